package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Bounds of documents of the kinds tool and mcp.
const (
	maxHeaders  = 32
	maxHosts    = 32
	maxAttempts = 8
)

// taskQueue is the syntax of task queues. They are short because the history has them with every
// call.
var taskQueue = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

const taskQueueRule = "must be 1 to 32 letters, digits, ., _ and -, and begin with a letter or digit"

// audience is the syntax of the audience of assertions.
var audience = regexp.MustCompile(`^[!-~]{1,255}$`)

const audienceRule = "must be 1 to 255 printable ASCII characters without spaces"

// Tool is a document of kind tool: a tool that sends an HTTP request. Package httptool checks the
// request itself.
type Tool struct {
	// Name is the tool's name for models: [a-zA-Z0-9_-]{1,64}.
	Name string `yaml:"name"`

	// Description tells models what the tool does and when to use it.
	Description string `yaml:"description"`

	// Parameters is the JSON Schema of the arguments; empty = no arguments.
	Parameters json.RawMessage `yaml:"parameters"`

	HTTP HTTP `yaml:"http"`

	// Idempotent is whether calling the tool twice has the same effect as calling it once.
	Idempotent bool `yaml:"idempotent"`

	// Attempts is how often a call may be made if it does not finish, 1 to 8. 0 = 3 for an
	// idempotent tool, else 1.
	Attempts int `yaml:"attempts"`

	// TaskQueue is the Temporal task queue of the workers that execute the calls; "" = the queue of
	// all workers.
	TaskQueue string `yaml:"taskQueue"`

	// Parallel is whether the calls of one turn may run concurrently. True by default.
	Parallel bool `yaml:"parallel"`

	// Position is the position of the document, for errors.
	Position SourcePosition `yaml:"-"`
}

// HTTP is the request that a call sends.
type HTTP struct {
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE.
	Method string `yaml:"method"`

	// URL is the address. Arguments replace {argument} in its path and query, the tenant and the
	// subject of the requester {caller.tenant} and {caller.subject}.
	URL string `yaml:"url"`

	// Headers are sent with the request; ${secret:NAME}, ${tenantSecret:NAME}, {caller.tenant} and
	// {caller.subject} in a value are replaced.
	Headers map[string]string `yaml:"headers"`

	// Body is the encoding of arguments that the URL does not use: json (the default) or form.
	Body string `yaml:"body"`

	// Timeout bounds one attempt; 0 = 30 s.
	Timeout time.Duration `yaml:"timeout"`

	// AllowedHosts are the hosts that redirects may lead to, besides the host of the URL.
	AllowedHosts []string `yaml:"allowedHosts"`

	// Assertion is whether requests have an assertion, if the worker signs any. True by default.
	// Audience is its audience; "" = the origin of the URL.
	Assertion bool   `yaml:"assertion"`
	Audience  string `yaml:"audience"`
}

// methods are the methods that a tool may use.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// tool reads a document of kind tool.
func (r *reader) tool(root *yaml.Node) *Tool {
	t := &Tool{Parallel: true, HTTP: HTTP{Assertion: true}, Position: SourcePosition{File: r.file, Line: root.Line, keys: r.nodes}}
	r.mapping("", root, []field{
		{"kind", r.kind(kindTool)},
		{"name", match(&t.Name, toolName, "must be 1 to 64 letters, digits, _ and -")},
		{"description", text(&t.Description)},
		{"parameters", schema(&t.Parameters)},
		{"http", r.http(&t.HTTP)},
		{"idempotent", flag(&t.Idempotent)},
		{"attempts", attempts(&t.Attempts)},
		{"taskQueue", match(&t.TaskQueue, taskQueue, taskQueueRule)},
		{"parallel", flag(&t.Parallel)},
	})
	r.require(root, "name", "http")
	if _, ok := r.nodes["http"]; ok && !r.failed["http"] {
		r.require(r.nodes["http"], "http.method", "http.url")
	}
	if t.Attempts > 1 && !t.Idempotent {
		r.report("attempts", r.nodes["attempts"], "attempts must be 1 unless the tool is idempotent")
	}
	return t
}

// http reads the key http.
func (r *reader) http(into *HTTP) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("http.", node, []field{
			{"method", oneOf(&into.Method, methods...)},
			{"url", text(&into.URL)},
			{"headers", r.table("http.headers", &into.Headers, maxHeaders)},
			{"body", oneOf(&into.Body, "json", "form")},
			{"timeout", duration(&into.Timeout)},
			{"allowedHosts", r.list("http.allowedHosts", &into.AllowedHosts, maxHosts)},
			{"assertion", flag(&into.Assertion)},
			{"audience", match(&into.Audience, audience, audienceRule)},
		})
		return ""
	}
}

// require reports the keys that a mapping lacks. keys are full paths.
func (r *reader) require(at *yaml.Node, keys ...string) {
	for _, key := range keys {
		if r.nodes[key] == nil && !r.failed[key] {
			r.report(key, at, key+" is missing")
		}
	}
}

// match reads a string that matches rule; reason describes the rule.
func match(into *string, rule *regexp.Regexp, reason string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if problem := text(into)(node); problem != "" {
			return problem
		}
		if !rule.MatchString(*into) {
			return fmt.Sprintf("%s, not %.80q", reason, *into)
		}
		return ""
	}
}

// oneOf reads one of the choices.
func oneOf(into *string, choices ...string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if problem := text(into)(node); problem != "" {
			return problem
		}
		if !slices.Contains(choices, *into) {
			return fmt.Sprintf("must be one of %s, not %.80q", strings.Join(choices, ", "), *into)
		}
		return ""
	}
}

// attempts reads a number of attempts.
func attempts(into *int) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if problem := count(into)(node); problem != "" {
			return problem
		}
		if *into > maxAttempts {
			return fmt.Sprintf("must be 1 to %d, not %d", maxAttempts, *into)
		}
		return ""
	}
}

// table reads a mapping of strings with at most limit entries.
func (r *reader) table(key string, into *map[string]string, limit int) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		if n := len(node.Content) / 2; n > limit {
			return fmt.Sprintf("must be at most %d, not %d", limit, n)
		}
		*into = map[string]string{}
		var fields []field
		for i := 0; i < len(node.Content); i += 2 {
			name := node.Content[i].Value
			fields = append(fields, field{name, func(value *yaml.Node) string {
				var s string
				reason := text(&s)(value)
				(*into)[name] = s
				return reason
			}})
		}
		r.mapping(key+".", node, fields)
		return ""
	}
}

// list reads a list of at most limit strings. Unlike texts it bounds their number.
func (r *reader) list(key string, into *[]string, limit int) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		if len(node.Content) > limit {
			return fmt.Sprintf("must be at most %d, not %d", limit, len(node.Content))
		}
		for _, entry := range node.Content {
			var s string
			if reason := text(&s)(resolve(entry)); reason != "" {
				r.report(key, entry, "an entry of "+key+" "+reason)
			}
			*into = append(*into, s)
		}
		return ""
	}
}
