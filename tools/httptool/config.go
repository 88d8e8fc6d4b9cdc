package httptool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// Config describes a tool, like a document of kind tool. [New] validates it.
type Config struct {
	// Name and Description are those of [tools.Spec].
	Name, Description string
	Parameters        json.RawMessage   // JSON Schema of the arguments
	Method            string            // GET, HEAD, POST, PUT, PATCH or DELETE
	URL               string            // with {argument} and {caller.member} in path and query
	Headers           map[string]string // values can contain ${secret:NAME}, ${tenantSecret:NAME} and {caller.member}
	Form              bool              // send arguments as a form, not as JSON
	Timeout           time.Duration     // of one attempt; 0 = tools.DefaultTimeout
	AllowedHosts      []string          // for redirects, in addition to the URL's host
	Idempotent        bool              // see [tools.Spec]
	Attempts          int               // 0 = tools.DefaultAttempts if idempotent, else 1
	Audience          string            // of assertions; "" = the origin of the URL
	TaskQueue         string            // whose workers make the calls; empty = the main queue
	Sequential        bool              // calls of one turn run one after the other
	Origin            string            // where the tool is declared, for error messages
}

// Environment is what the worker provides to its tools.
type Environment struct {
	// Secret returns a secret by name, "" if there is none. It must be safe for concurrent use. nil
	// = other workers make the calls, and this process only describes the tool; secrets are then
	// not checked.
	Secret func(name string) string
	// Sign returns the assertion of a call. It must be safe for concurrent use. nil = requests have
	// none.
	Sign func(assertion.Subject) (string, error)
	// AllowPrivate permits requests to addresses outside of the public internet.
	AllowPrivate bool
}

// ConfigError is a mistake in a [Config].
type ConfigError struct {
	Key    string // as in a document, such as http.url; "" = the whole document
	Reason string
}

// Error implements error.
func (e *ConfigError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + " " + e.Reason
}

// configErrorf returns a *ConfigError.
func configErrorf(key, format string, args ...any) *ConfigError {
	return &ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// Names and limits of headers. maxHeaderValue is in bytes, before secrets are inserted.
const (
	idempotencyHeader = "Idempotency-Key"
	assertionHeader   = "Perdure-Assertion"
	maxHeaderValue    = 8 << 10
)

// maxAssertion is the maximum length of an assertion in a header, in bytes. Servers commonly limit a
// header, or all headers together, to 8 KiB.
const maxAssertion = 4 << 10

var (
	// hostRule matches a host name or IPv6 address, with an optional port.
	hostRule = regexp.MustCompile(`^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(:[0-9]{1,5})?$|^\[[0-9a-fA-F:.]+\](:[0-9]{1,5})?$`)
	// headerRule matches a header name (RFC 9110, section 5.6.2, token).
	headerRule = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
	// reserved are the headers that net/http or this package sets.
	reserved = []string{
		"Connection", "Content-Length", "Expect", "Host", idempotencyHeader, "Keep-Alive", assertionHeader,
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
)

// parseHeaders validates and parses the headers. With secret, it also checks that all secrets
// exist.
func parseHeaders(headers map[string]string, secret func(string) string) (secrets.Texts, error) {
	seen := map[string]bool{}
	for name, value := range headers {
		key, canonical := "http.headers."+name, http.CanonicalHeaderKey(name)
		switch {
		case !headerRule.MatchString(name):
			return nil, configErrorf(key, "is not a header name")
		case slices.Contains(reserved, canonical):
			return nil, configErrorf(key, "is reserved")
		case seen[canonical]:
			return nil, configErrorf(key, "appears twice")
		case len(value) > maxHeaderValue:
			return nil, configErrorf(key, "must be at most %d bytes", maxHeaderValue)
		}
		seen[canonical] = true
	}
	texts, name, err := secrets.ParseAll(headers)
	if err != nil {
		return nil, configErrorf("http.headers."+name, "cannot be used: %v", err)
	}
	if secret == nil {
		return texts, nil
	}
	if err := texts.CheckSecrets(secret); err != nil {
		return nil, configErrorf("http.headers", "cannot be sent: %v", err)
	}
	return texts, nil
}

// callerPrefix begins the names of placeholders that the worker fills, and not the model.
const callerPrefix = "caller."

// checkArguments checks that the schema declares every placeholder of the URL, and requires those
// in the path, which cannot be empty.
func checkArguments(u *urlTemplate, parameters json.RawMessage) error {
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &schema); err != nil {
			return configErrorf("parameters", "must be the JSON Schema of an object")
		}
	}
	for name := range schema.Properties {
		if strings.HasPrefix(name, callerPrefix) {
			return configErrorf("parameters", "have %.80q, and names that begin with %s are reserved", name, callerPrefix)
		}
	}
	for _, name := range u.names() {
		if member, ok := strings.CutPrefix(name, callerPrefix); ok {
			if !slices.Contains(secrets.CallerMembers, member) {
				return configErrorf("http.url", "has {%s}, which is unknown: there are {caller.%s}", name, strings.Join(secrets.CallerMembers, "} and {caller."))
			}
			continue
		}
		if _, ok := schema.Properties[name]; !ok {
			return configErrorf("http.url", "has {%s}, which is not one of the parameters", name)
		}
	}
	for _, p := range u.path {
		if p.argument != "" && !strings.HasPrefix(p.argument, callerPrefix) && !slices.Contains(schema.Required, p.argument) {
			return configErrorf("http.url", "has {%s} in its path, so the parameter must be required", p.argument)
		}
	}
	return nil
}
