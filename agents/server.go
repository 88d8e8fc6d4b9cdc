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

// Server is a document of kind mcp: an MCP server, whose tools agents name as mcp:name/tool. It has
// either a URL or a command.
type Server struct {
	// Name is the beginning of its tools' names: [a-z0-9][a-z0-9-]{0,31}.
	Name string `yaml:"name"`

	// URL is where it is served, by MCP's streamable HTTP. Headers are sent with each request;
	// ${secret:NAME} in a value is replaced.
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`

	// Command is the program to start, with its arguments, and Env its environment besides the
	// usual; ${secret:NAME} in a value is replaced.
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`

	// Timeout bounds one attempt at a call; 0 = 30 s.
	Timeout time.Duration `yaml:"timeout"`

	// Idempotent says of all its tools whether calling twice does no more than calling once; nil =
	// as the server says of each.
	Idempotent *bool `yaml:"idempotent"`

	// Elicitation lets the server ask people in the middle of a call, which is made anew with the answer.
	Elicitation bool `yaml:"elicitation"`

	// Attempts is how often one call of a tool that is idempotent may be made if it comes to no end,
	// 1 to 8; 0 = 3.
	Attempts int `yaml:"attempts"`

	// TaskQueue is the Temporal task queue whose workers have the server; empty = that of all workers.
	TaskQueue string `yaml:"taskQueue"`

	// Parallel says that the calls of one turn, of all its tools, are made beside one another. It is true unless
	// the document says otherwise.
	Parallel bool `yaml:"parallel"`

	Place Place `yaml:"-"`
}

func (r *reader) server(root *yaml.Node) *Server {
	s := &Server{Parallel: true, Place: Place{File: r.file, Line: root.Line, keys: r.places}}
	var idempotent bool
	r.mapping("", root, []field{
		{"kind", r.kind(kindServer)},
		{"name", match(&s.Name, serverName, "must be 1 to 32 of a-z, 0-9 and -, and begin with a letter or digit")},
		{"url", text(&s.URL)},
		{"headers", r.table("headers", &s.Headers, maxHeaders)},
		{"command", r.list("command", &s.Command, maxCommand)},
		{"env", r.table("env", &s.Env, maxEnv)},
		{"timeout", duration(&s.Timeout)},
		{"idempotent", flag(&idempotent)},
		{"elicitation", flag(&s.Elicitation)},
		{"attempts", attempts(&s.Attempts)},
		{"taskQueue", match(&s.TaskQueue, taskQueue, badTaskQueue)},
		{"parallel", flag(&s.Parallel)},
	})
	if r.places["idempotent"] != nil {
		s.Idempotent = &idempotent
	}
	r.require(root, "name")
	r.transport(root, s)
	return s
}

// transport checks that there is one way to reach the server, and only what belongs to it.
func (r *reader) transport(root *yaml.Node, s *Server) {
	url, command := r.places["url"], r.places["command"]
	switch {
	case url == nil && command == nil:
		r.complain("url", root, "url or command is missing")
	case url != nil && command != nil:
		r.complain("command", command, "command and url exclude each other")
	case command != nil && len(s.Command) == 0 && !r.failed["command"]:
		r.complain("command", command, "command must have a program")
	case command != nil && r.places["headers"] != nil:
		r.complain("headers", r.places["headers"], "headers belong to a url")
	case url != nil && r.places["env"] != nil:
		r.complain("env", r.places["env"], "env belongs to a command")
	}
}
