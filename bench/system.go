package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// system is one path from the model to the client.
type system struct {
	name  string
	title string
	start func(ctx context.Context, e *environment) (*running, error)
}

// systems in the order in which they are shown.
var systems = []system{
	{"direct", "direct", startDirect},
	{"proxy", "proxy", startProxy},
	{"copilotkit", "CopilotKit runtime", startCopilotKit},
	{"dev", "perdure dev", startDev},
	{"apart", "api + worker", startApart},
}

func systemNames() []string {
	names := make([]string, len(systems))
	for i, s := range systems {
		names[i] = s.name
	}
	return names
}

func systemOf(name string) system {
	return systems[slices.IndexFunc(systems, func(s system) bool { return s.name == name })]
}

// environment is the environment in which systems are started.
type environment struct {
	bin   string // directory of the built programs
	root  string // directory of the tree that the bench belongs to
	self  string // this program
	dir   string // for data and logs; a new one for each start
	model string // base URL of the model server, up to and including /v1
	pprof bool
	// settings are environment variables for the system's processes, NAME=value.
	settings []string
	// pipelines are definitions of agents by name.
	pipelines map[string]string
}

func (e *environment) modelEnv() []string {
	return append(slices.Clone(e.settings), "OPENAI_BASE_URL="+e.model, "OPENAI_API_KEY=bench")
}

// running is a system that accepts runs. Its processes are measured, in the order in which they
// were started.
type running struct {
	target    target
	processes []*process
	pprof     string // URL of its profiles, if any
	// metrics has the URLs of metrics, by the name of the process that serves them.
	metrics map[string]string
	// temporal and namespace are the address and the namespace of its workflows, for a system with
	// its own servers.
	temporal, namespace string
	// startWorker starts a further worker, for a system with separate processes. It does not wait
	// until the worker is ready.
	startWorker func() (*process, error)
}

func (r *running) process(name string) *process {
	return r.processes[slices.IndexFunc(r.processes, func(p *process) bool { return p.name == name })]
}

func (r *running) stop() error {
	var errs []error
	for _, p := range slices.Backward(r.processes) {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

// tails returns the end of each process's output, to explain a failure.
func (r *running) tails() string {
	var b strings.Builder
	for _, p := range r.processes {
		fmt.Fprintf(&b, "\n--- %s\n%s", p.name, p.tail())
	}
	return b.String()
}

// startDirect returns a client that reads the model directly: there is nothing to start.
func startDirect(_ context.Context, e *environment) (*running, error) {
	return &running{target: target{
		base: e.model,
		path: func(pace) string { return "/v1/chat/completions" },
		body: func(p pace, _ string) []byte {
			return fmt.Appendf(nil, `{"model":%q,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Count."}]}`, p)
		},
		dialect: dialectOpenAI,
	}}, nil
}

// agentTarget returns an AG-UI endpoint. Its agents have the names of the models that they use.
func agentTarget(base string) target {
	return target{
		base: base,
		path: func(p pace) string { return "/v1/agents/" + string(p) + "/runs" },
		body: func(_ pace, id string) []byte {
			return fmt.Appendf(nil, `{"threadId":"thread-%s","runId":"run-%s","protocolVersion":"1.0","messages":[{"id":"m1","role":"user","content":"Count."}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, id, id)
		},
		dialect: dialectAGUI,
	}
}

// startProxy starts the handler that stores nothing.
func startProxy(ctx context.Context, e *environment) (*running, error) {
	p, base, err := spawnRole(ctx, e.dir, "proxy", e.modelEnv(), e.self, "proxy")
	if err != nil {
		return nil, err
	}
	return &running{target: agentTarget(base), processes: []*process{p}}, nil
}

// startDev starts perdure dev, and waits until it is ready.
func startDev(ctx context.Context, e *environment) (*running, error) {
	agents, err := e.writeAgents()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(e.dir, "data")
	args := []string{"dev", "--addr", "127.0.0.1:0", "--temporal-port", "0", "--nats-port", "0", "--temporal-ui-port", "-1", "--data", data, "--agents", agents}
	r := &running{}
	if e.pprof {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--pprof", port)
		r.pprof = "http://" + port
	}
	p, err := spawn(e.dir, "dev", e.modelEnv(), filepath.Join(e.bin, "perdure"), args...)
	if err != nil {
		return nil, err
	}
	r.processes = []*process{p}
	var where struct{ API, Temporal, Namespace string }
	err = p.await(ctx, func() bool {
		text, err := os.ReadFile(filepath.Join(data, "addresses.json"))
		return err == nil && json.Unmarshal(text, &where) == nil && answers(ctx, where.API+"/readyz")
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	r.target, r.temporal, r.namespace = agentTarget(where.API), where.Temporal, where.Namespace
	return r, nil
}

// writeAgents writes one agent for each pace of the model, and the pipelines.
func (e *environment) writeAgents() (string, error) {
	agents := filepath.Join(e.dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		return "", err
	}
	definitions := maps.Clone(e.pipelines)
	for p, s := range speeches {
		definitions[string(p)] = fmt.Sprintf("name: %s\nmodel: openai/%s\n%s", p, p, s.agent)
	}
	for name, text := range definitions {
		if err := os.WriteFile(filepath.Join(agents, name+".yaml"), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return agents, nil
}

// answers reports whether a request to a URL succeeds.
func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
