package mcptool

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"time"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// Config describes a server, like a document of kind mcp. Either URL or Command is set.
type Config struct {
	Name string // [a-z0-9][a-z0-9-]{0,31}

	// URL is the endpoint for streamable HTTP. Values of Headers can contain ${secret:NAME}.
	URL     string
	Headers map[string]string

	// Command is a program with its arguments. Values of Env can contain ${secret:NAME}.
	Command []string
	Env     map[string]string

	Timeout    time.Duration // of one attempt; 0 = tools.DefaultTimeout
	Idempotent *bool         // for all tools; nil = by the server's annotations
	// Elicitation permits the server to ask the user during a call. The call is repeated with the
	// answers.
	Elicitation bool
	Attempts    int    // of idempotent tools; 0 = tools.DefaultAttempts
	Audience    string // of assertions; "" = the origin of URL, or mcp: and Name
	TaskQueue   string // whose workers make the calls; empty = the main queue
	Sequential  bool   // calls of one turn to any of its tools run one after the other
	Origin      string // where the server is declared, for error messages
}

// Environment is what the worker provides to its servers.
type Environment struct {
	// Secret returns a secret by name, "" if there is none. It must be safe for concurrent use.
	Secret func(name string) string
	// Sign returns the assertion of a call. It must be safe for concurrent use. nil = calls have
	// none.
	Sign func(assertion.Subject) (string, error)
	// AllowPrivate permits servers at addresses outside of the public internet.
	AllowPrivate bool
	// Logger receives changes of the connection, and the standard error of programs.
	Logger *slog.Logger
}

// ConfigError is a mistake in a [Config].
type ConfigError struct {
	Key    string // as in a document, such as headers
	Reason string
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Key + " " + e.Reason }

// configErrorf returns a *ConfigError.
func configErrorf(key, format string, args ...any) *ConfigError {
	return &ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

var (
	// headerRule matches a header name (RFC 9110, section 5.6.2, token), variableRule the name of
	// an environment variable.
	headerRule   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
	variableRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	// reservedHeaders are the headers that net/http or the MCP transport sets.
	reservedHeaders = map[string]bool{
		"Accept": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Host": true, "Last-Event-Id": true,
		"Mcp-Protocol-Version": true, "Mcp-Session-Id": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	}
)

// dialer returns the dialer of the server. The error is a *ConfigError, also if a secret is
// missing.
func (cfg Config) dialer(env Environment) (dialer, error) {
	if cfg.URL != "" {
		return cfg.remote(env)
	}
	return cfg.program(env)
}

// audience returns the audience of assertions. cfg is valid.
func (cfg Config) audience() string {
	if cfg.Audience != "" {
		return cfg.Audience
	}
	if endpoint, err := url.Parse(cfg.URL); err == nil && cfg.URL != "" {
		return assertion.Origin(endpoint)
	}
	return "mcp:" + cfg.Name
}

// remote returns the dialer of a server with a URL.
func (cfg Config) remote(env Environment) (dialer, error) {
	endpoint, err := url.Parse(cfg.URL)
	switch {
	case err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http":
		return nil, configErrorf("url", "must begin with https:// or http:// and have a host")
	case endpoint.User != nil:
		return nil, configErrorf("url", "must not have a user or password; use a header with a secret")
	case endpoint.Fragment != "":
		return nil, configErrorf("url", "must not have a fragment: it would not be sent")
	}
	var names []string
	for name := range cfg.Headers {
		if !headerRule.MatchString(name) {
			return nil, configErrorf("headers."+name, "is not a header name")
		}
		if reservedHeaders[http.CanonicalHeaderKey(name)] {
			return nil, configErrorf("headers."+name, "is reserved")
		}
		names = append(names, name)
	}
	headers, err := fillable("headers", cfg.Headers, env.Secret)
	if err != nil {
		return nil, err
	}
	transport := egress.Transport(egress.PolicyFor(env.AllowPrivate))
	return &remote{
		endpoint: endpoint, transport: transport,
		client: &http.Client{
			Transport:     &roundTripper{base: egress.Traced(transport), host: egress.HostOf(endpoint), headers: headers, secret: env.Secret},
			CheckRedirect: egress.Redirects(egress.Hosts{egress.HostOf(endpoint)}, names),
		},
		headers: headers, secret: env.Secret,
	}, nil
}

// program returns the dialer of a program.
func (cfg Config) program(env Environment) (dialer, error) {
	if len(cfg.Command) == 0 {
		return nil, configErrorf("command", "must have a program")
	}
	path, err := exec.LookPath(cfg.Command[0])
	if err != nil {
		return nil, configErrorf("command", "has %.200q, which is not a program on this machine", cfg.Command[0])
	}
	for name := range cfg.Env {
		if !variableRule.MatchString(name) {
			return nil, configErrorf("env."+name, "is not a variable name")
		}
	}
	variables, err := fillable("env", cfg.Env, env.Secret)
	if err != nil {
		return nil, err
	}
	return &program{path: path, args: cfg.Command, env: variables, secret: env.Secret, logger: env.Logger.With("server", cfg.Name)}, nil
}

// fillable parses texts and checks that all their secrets exist. key is the key of the texts in a
// document.
func fillable(key string, texts map[string]string, secret func(string) string) (secrets.Texts, error) {
	all, name, err := secrets.ParseAll(texts)
	if err != nil {
		return nil, configErrorf(key+"."+name, "cannot be used: %v", err)
	}
	if name := all.NeedsCaller(); name != "" {
		return nil, configErrorf(key+"."+name, "must not refer to the caller or its tenant: one connection serves all callers. Verify the assertion of each call instead")
	}
	if _, _, err := all.Fill(secret); err != nil {
		return nil, configErrorf(key, "cannot be used: %v", err)
	}
	return all, nil
}
