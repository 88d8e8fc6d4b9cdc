// Package toolset puts a worker's tools together: those that every worker has, and those that the
// files of a folder declare, as HTTP requests and as MCP servers. Mistakes in the files are told
// with file and line, all at once; so are names that clash.
package toolset

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
	"github.com/perdure/perdure/tools/httptool"
	"github.com/perdure/perdure/tools/mcptool"
)

// Config says what the tools are and what they may do.
type Config struct {
	// Folder has the documents; nil = none.
	Folder *agents.Folder
	// Own are the program's.
	Own []tools.Tool
	// Getenv reads the worker's environment, for secrets. It is used concurrently.
	Getenv func(name string) string
	// Serves tells whether this worker makes the calls that go to a task queue; empty is the one of
	// all workers. What it does not serve it only describes. nil = it serves all.
	Serves func(queue string) bool
	// AllowPrivate lets tools reach addresses that are not of the public internet.
	AllowPrivate bool
	Logger       *slog.Logger
}

// Set is a worker's tools.
type Set struct {
	registry  *tools.Registry
	servers   []*mcptool.Server
	elsewhere []*elsewhere
	declared  []string // task queues of all servers
}

// secretPrefix begins the variables that have secrets.
const secretPrefix = "PERDURE_SECRET_"

func (c Config) secret(name string) string { return c.Getenv(secretPrefix + name) }

// Open makes the tools and begins to connect to the servers. Close must be called.
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
	var wrong []error
	all := append(builtin.Tools(), cfg.Own...)
	for _, declared := range cfg.Folder.Tools {
		tool, err := cfg.tool(declared)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, tool)
	}
	var sources []tools.Source
	for _, declared := range cfg.Folder.Servers {
		s.declared = append(s.declared, declared.TaskQueue)
		if !cfg.serves(declared.TaskQueue) {
			away := &elsewhere{declared: declared}
			s.elsewhere, sources = append(s.elsewhere, away), append(sources, away)
			continue
		}
		server, err := cfg.server(declared)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		s.servers, sources = append(s.servers, server), append(sources, server)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	registry, err := tools.NewRegistry(all...)
	if err != nil {
		return nil, err
	}
	if s.registry, err = registry.With(sources...); err != nil {
		return s, err
	}
	return s, checkClashes(cfg.Folder.Agents, s.registry)
}

// checkClashes finds agents whose model could not tell a tool from an agent that work, or the
// thread, is handed to: they have one name for it.
func checkClashes(all []*agents.Definition, r *tools.Registry) error {
	var wrong []error
	for _, d := range all {
		ours, _ := agents.SplitTools(d.Tools)
		offered, err := r.Select(ours)
		if err != nil {
			continue // what it lacks may be another worker's
		}
		clash := func(pattern, called string) {
			if slices.ContainsFunc(offered, func(t tools.Tool) bool { return t.Spec().Name == called }) {
				wrong = append(wrong, &agents.DefinitionError{Key: "tools", Reason: fmt.Sprintf("agent %s: %s and a tool have one name for the model", d.Name, pattern)})
			}
		}
		for _, name := range agents.Delegates(d.Tools) {
			clash(agents.AgentPrefix+name, name)
		}
		for _, name := range agents.Handoffs(d.Tools) {
			clash(agents.HandoffPrefix+name, agents.HandoffTool(name))
		}
	}
	return errors.Join(wrong...)
}

// Registry returns the tools.
func (s *Set) Registry() *tools.Registry { return s.registry }

// Close ends the connections to servers, and the servers that are programs of ours. It waits for
// them.
func (s *Set) Close() {
	var wait sync.WaitGroup
	for _, server := range s.servers {
		wait.Go(server.Stop)
	}
	wait.Wait()
}

func (c Config) serves(queue string) bool { return c.Serves == nil || c.Serves(queue) }

func (c Config) tool(d *agents.Tool) (tools.Tool, error) {
	env := httptool.Environment{AllowPrivate: c.AllowPrivate}
	if c.serves(d.TaskQueue) {
		env.Secret = c.secret
	}
	made, err := httptool.New(httptool.Config{
		Name: d.Name, Description: d.Description, Parameters: d.Parameters,
		Method: d.HTTP.Method, URL: d.HTTP.URL, Headers: d.HTTP.Headers, Form: d.HTTP.Body == "form", Timeout: d.HTTP.Timeout,
		AllowedHosts: d.HTTP.AllowedHosts, Idempotent: d.Idempotent, Attempts: d.Attempts,
		TaskQueue: d.TaskQueue, Sequential: !d.Parallel, Origin: d.Place.String(),
	}, env)
	var wrong *httptool.ConfigError
	if errors.As(err, &wrong) {
		return nil, d.Place.Wrong(wrong.Key, wrong.Error())
	}
	if err != nil {
		return nil, err
	}
	tool, err := tools.Guard(made)
	if spec := (*tools.SpecError)(nil); errors.As(err, &spec) {
		return nil, d.Place.Wrong("parameters", spec.Error())
	}
	return tool, err
}

func (c Config) server(d *agents.Server) (*mcptool.Server, error) {
	server, err := mcptool.Start(mcptool.Config{
		Name: d.Name, URL: d.URL, Headers: d.Headers, Command: d.Command, Env: d.Env,
		Timeout: d.Timeout, Idempotent: d.Idempotent, Elicitation: d.Elicitation, Attempts: d.Attempts,
		TaskQueue: d.TaskQueue, Sequential: !d.Parallel, Origin: d.Place.String(),
	}, mcptool.Environment{Secret: c.secret, AllowPrivate: c.AllowPrivate, Logger: c.Logger})
	var wrong *mcptool.ConfigError
	if errors.As(err, &wrong) {
		return nil, d.Place.Wrong(wrong.Key, wrong.Error())
	}
	return server, err
}

// LookElsewhere has the tools of servers that this worker does not serve looked up; until then they
// are unknown.
func (s *Set) LookElsewhere(lookUp Lookup) {
	for _, e := range s.elsewhere {
		e.lookUp.Store(&lookUp)
	}
}

// TaskQueues lists those, besides the one of all workers, that tools are declared to be on.
func (s *Set) TaskQueues() []string {
	var queues []string
	own, _ := s.registry.Select([]string{"*"}) // a pattern, which may match nothing, does not fail
	for _, t := range own {
		queues = append(queues, t.Spec().TaskQueue)
	}
	queues = append(queues, s.declared...)
	slices.Sort(queues)
	return slices.DeleteFunc(slices.Compact(queues), func(q string) bool { return q == "" })
}
