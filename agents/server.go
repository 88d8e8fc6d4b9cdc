package agents

import (
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	maxCommand = 64
	maxEnv     = 64
)

var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Server is a document of kind mcp: an MCP server. Agents refer to its tools by mcp:name/tool. It
// has either a URL or a command.
type Server struct {
	// Name precedes the names of its tools: [a-z0-9][a-z0-9-]{0,31}.
	Name string `yaml:"name"`

	// URL is the address of MCP's streamable HTTP. Headers are sent with each request;
	// ${secret:NAME} in a value is replaced.
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`

	// Command is the program to start, with its arguments. Env is added to the usual environment;
	// ${secret:NAME} in a value is replaced.
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`

	// Assertion is whether calls have an assertion, if the worker signs any. True by default.
	// Audience is its audience; "" = the origin of the URL, or mcp: and the name.
	Assertion bool   `yaml:"assertion"`
	Audience  string `yaml:"audience"`

	// Timeout bounds one attempt of a call; 0 = 30 s.
	Timeout time.Duration `yaml:"timeout"`

	// Idempotent is whether calling a tool twice has the same effect as calling it once; nil = the
	// server declares it for each tool.
	Idempotent *bool `yaml:"idempotent"`

	// Elicitation allows the server to ask the user during a call (MCP elicitation). The call is
	// then repeated with the answer.
	Elicitation bool `yaml:"elicitation"`

	// Attempts is how often a call of an idempotent tool may be made if it does not finish, 1 to 8;
	// 0 = 3.
	Attempts int `yaml:"attempts"`

	// TaskQueue is the Temporal task queue of the workers that have the server; empty = the queue
	// of all workers.
	TaskQueue string `yaml:"taskQueue"`

	// Parallel is whether the calls of one turn, of all its tools, may run concurrently. True by
	// default.
	Parallel bool `yaml:"parallel"`

	// Position is the position of the document, for errors.
	Position SourcePosition `yaml:"-"`
}

// server reads a document of kind mcp.
func (r *reader) server(root *yaml.Node) *Server {
	s := &Server{Parallel: true, Assertion: true, Position: SourcePosition{File: r.file, Line: root.Line, keys: r.nodes}}
	var idempotent bool
	r.mapping("", root, []field{
		{"kind", r.kind(kindServer)},
		{"name", match(&s.Name, serverName, "must be 1 to 32 of a-z, 0-9 and -, and begin with a letter or digit")},
		{"url", text(&s.URL)},
		{"headers", r.table("headers", &s.Headers, maxHeaders)},
		{"command", r.list("command", &s.Command, maxCommand)},
		{"env", r.table("env", &s.Env, maxEnv)},
		{"assertion", flag(&s.Assertion)},
		{"audience", match(&s.Audience, audience, audienceRule)},
		{"timeout", duration(&s.Timeout)},
		{"idempotent", flag(&idempotent)},
		{"elicitation", flag(&s.Elicitation)},
		{"attempts", attempts(&s.Attempts)},
		{"taskQueue", match(&s.TaskQueue, taskQueue, taskQueueRule)},
		{"parallel", flag(&s.Parallel)},
	})
	if r.nodes["idempotent"] != nil {
		s.Idempotent = &idempotent
	}
	r.require(root, "name")
	r.transport(root, s)
	return s
}

// transport reports a server without a transport or with two, and keys that belong to the other
// transport.
func (r *reader) transport(root *yaml.Node, s *Server) {
	url, command := r.nodes["url"], r.nodes["command"]
	switch {
	case url == nil && command == nil:
		r.report("url", root, "url or command is missing")
	case url != nil && command != nil:
		r.report("command", command, "command and url exclude each other")
	case command != nil && len(s.Command) == 0 && !r.failed["command"]:
		r.report("command", command, "command must have a program")
	case command != nil && r.nodes["headers"] != nil:
		r.report("headers", r.nodes["headers"], "headers belong to a url")
	case url != nil && r.nodes["env"] != nil:
		r.report("env", r.nodes["env"], "env belongs to a command")
	}
}
