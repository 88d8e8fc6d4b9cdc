// Package toolset assembles the tools of a worker: the built-in tools, the tools of the program,
// and those that files declare as HTTP requests or MCP servers. It reports all mistakes of the
// files together, each with file and line, and names that occur twice.
package toolset

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
	"github.com/perdure/perdure/tools/httptool"
	"github.com/perdure/perdure/tools/mcptool"
)

// Config configures the tools of a worker.
type Config struct {
	// Folder has the declarations; nil = none.
	Folder *agents.Folder
	// Own are the tools of the Go program.
	Own []tools.Tool
	// Getenv reads the worker's environment, for secrets. It is called concurrently.
	Getenv func(name string) string
	// Serves reports whether this worker executes the calls of a task queue; "" is the queue of all
	// workers. A tool of another queue is only described to models, and its secrets are not read.
	// nil = this worker serves all queues.
	Serves func(queue string) bool
	// Signer signs assertions of the calls of HTTP tools and MCP servers; nil = they have none.
	Signer *assertion.Signer
	// AllowPrivate allows tools to reach addresses that are not on the public internet.
	AllowPrivate bool
	Logger       *slog.Logger
}

// Set has the tools of a worker, and the connections to its MCP servers. Close ends them.
type Set struct {
	registry *tools.Registry
	// servers are the MCP servers that this worker serves, elsewhere those of other task queues.
	servers       []*mcptool.Server
	remoteServers []*remoteServer
	declared      []string // task queues of all declared MCP servers
}

// Secrets returns the lookup of the secrets in a worker's environment.
func Secrets(getenv func(name string) string) secrets.Lookup {
	return func(name string) string { return getenv(secrets.VariablePrefix + name) }
}

// Open makes the tools, and starts to connect to the MCP servers in the background. The caller must
// call Close. Errors are mistakes of the declarations, joined, and names that occur twice.
func Open(cfg Config) (_ *Set, err error) {
	if cfg.Folder == nil {
		cfg.Folder = &agents.Folder{}
	}
	s := &Set{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	var problems []error
	all := append(builtin.Tools(), cfg.Own...)
	for _, declared := range cfg.Folder.Tools {
		tool, err := cfg.tool(declared)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		all = append(all, tool)
	}
	var sources []tools.Source
	for _, declared := range cfg.Folder.Servers {
		s.declared = append(s.declared, declared.TaskQueue)
		if !cfg.serves(declared.TaskQueue) {
			remote := &remoteServer{declared: declared}
			s.remoteServers, sources = append(s.remoteServers, remote), append(sources, remote)
			continue
		}
		server, err := cfg.server(declared)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s.servers, sources = append(s.servers, server), append(sources, server)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	registry, err := tools.NewRegistry(all...)
	if err != nil {
		return nil, err
	}
	if s.registry, err = registry.With(sources...); err != nil {
		return s, err
	}
	return s, s.CheckClashes(cfg.Folder.Agents)
}

// CheckClashes reports agents that offer a model two tools of the same name: a tool, and the call
// of a subagent or of a handoff. Errors are joined.
func (s *Set) CheckClashes(all []*agents.Definition) error {
	var problems []error
	for _, d := range all {
		serverTools, _ := agents.SplitTools(d.Tools)
		offered, err := s.registry.Select(serverTools)
		if err != nil {
			continue // a tool that is unknown here may be another worker's
		}
		clash := func(pattern, called string) {
			if slices.ContainsFunc(offered, func(t tools.Tool) bool { return t.Spec().Name == called }) {
				problems = append(problems, &agents.DefinitionError{Key: "tools", Reason: fmt.Sprintf("agent %s: %s and a tool have the same name for the model", d.Name, pattern)})
			}
		}
		for _, name := range agents.Subagents(d.Tools) {
			clash(agents.AgentPrefix+name, name)
		}
		for _, name := range agents.Handoffs(d.Tools) {
			clash(agents.HandoffPrefix+name, agents.HandoffTool(name))
		}
	}
	return errors.Join(problems...)
}

// Registry returns the registry of all tools.
func (s *Set) Registry() *tools.Registry { return s.registry }

// Close ends the connections to MCP servers and the server processes that Open has started. It
// waits for them.
func (s *Set) Close() {
	var wait sync.WaitGroup
	for _, server := range s.servers {
		wait.Go(server.Stop)
	}
	wait.Wait()
}

// serves is Serves, with its default.
func (c Config) serves(queue string) bool { return c.Serves == nil || c.Serves(queue) }

// tool makes an HTTP tool of its declaration. Mistakes are errors with the file and line of the
// key.
func (c Config) tool(d *agents.Tool) (tools.Tool, error) {
	env := httptool.Environment{AllowPrivate: c.AllowPrivate, Sign: c.sign(d.HTTP.Assertion)}
	if c.serves(d.TaskQueue) {
		env.Secret = Secrets(c.Getenv)
	}
	made, err := httptool.New(httptool.Config{
		Name: d.Name, Description: d.Description, Parameters: d.Parameters,
		Method: d.HTTP.Method, URL: d.HTTP.URL, Headers: d.HTTP.Headers, Form: d.HTTP.Body == "form", Timeout: d.HTTP.Timeout,
		AllowedHosts: d.HTTP.AllowedHosts, Audience: d.HTTP.Audience, Idempotent: d.Idempotent, Attempts: d.Attempts,
		TaskQueue: d.TaskQueue, Sequential: !d.Parallel, Origin: d.Position.String(),
	}, env)
	var configErr *httptool.ConfigError
	if errors.As(err, &configErr) {
		return nil, d.Position.ErrorAt(configErr.Key, configErr.Error())
	}
	if err != nil {
		return nil, err
	}
	tool, err := tools.Guard(made)
	if spec := (*tools.SpecError)(nil); errors.As(err, &spec) {
		return nil, d.Position.ErrorAt("parameters", spec.Error())
	}
	return tool, err
}

// sign returns the function that signs the assertions of a tool; nil = its calls have none.
func (c Config) sign(wanted bool) func(assertion.Subject) (string, error) {
	if c.Signer == nil || !wanted {
		return nil
	}
	return c.Signer.Sign
}

// server starts the client of an MCP server of its declaration.
func (c Config) server(d *agents.Server) (*mcptool.Server, error) {
	server, err := mcptool.Start(mcptool.Config{
		Name: d.Name, URL: d.URL, Headers: d.Headers, Command: d.Command, Env: d.Env,
		Timeout: d.Timeout, Idempotent: d.Idempotent, Elicitation: d.Elicitation, Attempts: d.Attempts, Audience: d.Audience,
		TaskQueue: d.TaskQueue, Sequential: !d.Parallel, Origin: d.Position.String(),
	}, mcptool.Environment{Secret: Secrets(c.Getenv), Sign: c.sign(d.Assertion), AllowPrivate: c.AllowPrivate, Logger: c.Logger})
	var configErr *mcptool.ConfigError
	if errors.As(err, &configErr) {
		return nil, d.Position.ErrorAt(configErr.Key, configErr.Error())
	}
	return server, err
}

// LookElsewhere sets how the tools of MCP servers on other task queues are found. Until this call
// they are unknown. It is safe for concurrent use with the tools.
func (s *Set) LookElsewhere(lookUp Lookup) {
	for _, e := range s.remoteServers {
		e.lookUp.Store(&lookUp)
	}
}

// TaskQueues returns the task queues that tools and MCP servers declare, sorted, each once, without
// the queue of all workers.
func (s *Set) TaskQueues() []string {
	var queues []string
	own, _ := s.registry.Select([]string{"*"}) // Select fails for an unknown name only, not for a pattern
	for _, t := range own {
		queues = append(queues, t.Spec().TaskQueue)
	}
	queues = append(queues, s.declared...)
	slices.Sort(queues)
	return slices.DeleteFunc(slices.Compact(queues), func(q string) bool { return q == "" })
}
