package httptool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/internal/secrets"
)

// Config describes a tool, like a document of kind tool.
type Config struct {
	Name, Description string
	Parameters        json.RawMessage // JSON Schema of the arguments
	Method            string          // GET, HEAD, POST, PUT, PATCH or DELETE
	URL               string          // with {argument} in path and query
	Headers           map[string]string
	Form              bool          // send arguments as a form, not as JSON
	Timeout           time.Duration // of one attempt; 0 = tools.DefaultTimeout
	AllowedHosts      []string      // for redirects, in addition to the URL's host
	Idempotent        bool
	Attempts          int    // 0 = tools.DefaultAttempts if idempotent, else 1
	TaskQueue         string // whose workers make the calls; empty = the main queue
	Sequential        bool   // calls of one turn run one after the other
	Origin            string // where the tool is declared, for people
}

// Environment is what the worker provides to its tools.
type Environment struct {
	// Secret returns a secret by name, "" if there is none. It must be safe for concurrent use. nil = other workers make the calls, and this
	// process only describes the tool.
	Secret func(name string) string
	// AllowPrivate permits addresses outside of the public internet.
	AllowPrivate bool
}

// ConfigError is a mistake in a Config.
type ConfigError struct {
	Key    string // as in a document, such as http.url; "" = the whole
	Reason string
}

func (e *ConfigError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + " " + e.Reason
}

func wrong(key, format string, args ...any) *ConfigError {
	return &ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// New makes a tool. The error is a *ConfigError, also if a secret is missing.
func New(cfg Config, env Environment) (*Tool, error) {
	t := &Tool{cfg: cfg, secret: env.Secret}
	var err error
	if t.url, err = parseURL(cfg.URL); err != nil {
		return nil, err
	}
	if t.headers, err = parseHeaders(cfg.Headers, env.Secret); err != nil {
		return nil, err
	}
	if err := checkArguments(t.url, cfg.Parameters); err != nil {
		return nil, err
	}
	t.host = t.url.base.Host
	hosts := egress.Hosts{egress.HostOf(t.url.base)}
	for _, host := range cfg.AllowedHosts {
		if !hostRule.MatchString(host) {
			return nil, wrong("http.allowedHosts", "has %.80q, which must be host or host:port", host)
		}
		hosts = append(hosts, host)
	}
	transport := egress.Transport(env.AllowPrivate)
	transport.DisableKeepAlives = true
	t.client = &http.Client{
		Transport:     egress.Traced(transport),
		CheckRedirect: egress.Redirects(hosts, append(slices.Collect(maps.Keys(cfg.Headers)), idempotencyHeader)),
	}
	return t, nil
}

const (
	idempotencyHeader = "Idempotency-Key"
	maxHeaderValue    = 8 << 10
)

var (
	hostRule   = regexp.MustCompile(`^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(:[0-9]{1,5})?$|^\[[0-9a-fA-F:.]+\](:[0-9]{1,5})?$`)
	headerRule = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
	// reserved are headers that the connection or this package sets.
	reserved = []string{
		"Connection", "Content-Length", "Expect", "Host", idempotencyHeader, "Keep-Alive", "Proxy-Authorization",
		"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
)

func parseHeaders(headers map[string]string, secret func(string) string) (secrets.Texts, error) {
	seen := map[string]bool{}
	for name, value := range headers {
		key, canonical := "http.headers."+name, http.CanonicalHeaderKey(name)
		switch {
		case !headerRule.MatchString(name):
			return nil, wrong(key, "is no name of a header")
		case slices.Contains(reserved, canonical):
			return nil, wrong(key, "is set by the program")
		case seen[canonical]:
			return nil, wrong(key, "is there twice")
		case len(value) > maxHeaderValue:
			return nil, wrong(key, "must be at most %d bytes", maxHeaderValue)
		}
		seen[canonical] = true
	}
	texts, name, err := secrets.ParseAll(headers)
	if err != nil {
		return nil, wrong("http.headers."+name, "cannot be used: %v", err)
	}
	if secret == nil {
		return texts, nil
	}
	if _, _, err := texts.Fill(secret); err != nil {
		return nil, wrong("http.headers", "cannot be sent: %v", err)
	}
	return texts, nil
}

// checkArguments compares the placeholders of a URL with the arguments of the schema.
func checkArguments(u *urlTemplate, parameters json.RawMessage) error {
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &schema); err != nil {
			return wrong("parameters", "must be the JSON Schema of an object")
		}
	}
	for _, name := range u.names() {
		if _, ok := schema.Properties[name]; !ok {
			return wrong("http.url", "has {%s}, which is none of the parameters", name)
		}
	}
	for _, p := range u.path {
		if p.argument != "" && !slices.Contains(schema.Required, p.argument) {
			return wrong("http.url", "has {%s} in its path, so that it must be required", p.argument)
		}
	}
	return nil
}

// Spec implements [tools.Tool].
func (t *Tool) Spec() tools.Spec {
	s := tools.Spec{
		Name: t.cfg.Name, Description: t.cfg.Description, Parameters: t.cfg.Parameters,
		Timeout: t.cfg.Timeout, Idempotent: t.cfg.Idempotent, Attempts: t.cfg.Attempts, TaskQueue: t.cfg.TaskQueue,
	}
	if t.cfg.Sequential {
		s.Sequence = s.Name
	}
	return s
}

// Origin returns where the tool is declared.
func (t *Tool) Origin() string { return t.cfg.Origin }

// sendsQuery reports whether arguments go into the query: for these methods a body has no defined meaning.
func (t *Tool) sendsQuery() bool {
	return strings.Contains(" GET HEAD DELETE ", " "+t.cfg.Method+" ")
}
