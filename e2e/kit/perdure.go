package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// WaitTimeout bounds every wait. It is generous, since tests reach it only when they fail.
var WaitTimeout = 45*time.Second + OutageLength

// Program is the perdure binary under test.
var Program string

// Perdure is "perdure dev" on one data directory, over any number of starts.
type Perdure struct {
	*Endpoint
	data    string
	model   *Model
	Program string
	Addr    string // address to listen on; by default a free port, which changes with each start
	Agents  string
	Env     []string // appended to the environment
	Flags   []string
	User    *syscall.SysProcAttr // see Unprivileged; nil = the user of the test
	Output  Output
	Process *Process // nil before the first start
}

// NewPerdure returns a process with a data directory and a model server. It is not started.
func NewPerdure(data string, m *Model) *Perdure {
	return &Perdure{
		Endpoint: NewEndpoint(newThreadSet()), data: data, model: m,
		Program: Program, Addr: "127.0.0.1:0", Agents: filepath.Join("testdata", "agents"),
	}
}

// Setup starts a process for one test, with the agents of testdata/agents. It is inspected and
// stopped when the test ends.
func Setup(t *testing.T) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// SetupWith is like Setup, with these definitions as the only agents.
func SetupWith(t *testing.T, definitions string) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// InspectAtEnd has the process inspected and stopped when the test ends.
func (p *Perdure) InspectAtEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := p.InspectAndStop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of perdure:\n%s", p.Output.String())
		}
	})
}

// Start starts the process and waits until it is ready.
func (p *Perdure) Start(t *testing.T) {
	t.Helper()
	if err := p.Launch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Command returns the command line of the process, with free ports.
func (p *Perdure) Command() *exec.Cmd {
	cmd := exec.Command(p.Program, "dev", "--addr", p.Addr, "--data", p.data,
		"--agents", p.Agents, "--temporal-port", "0", "--nats-port", "0", "--temporal-ui-port", "-1")
	cmd.Args = append(cmd.Args, p.Flags...)
	cmd.SysProcAttr = p.User
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, p.model.Environ()...)
	cmd.Env = append(cmd.Env, p.Env...)
	return cmd
}

// Launch is like Start, without a test to fail.
func (p *Perdure) Launch(ctx context.Context) (err error) {
	p.Process, err = Launch(ctx, p.Command(), &p.Output, func(line []byte) bool { return string(line) == "Perdure is ready." })
	if err != nil {
		return err
	}
	return p.readAddresses(ctx)
}

// readAddresses reads the addresses of the process and checks that it is ready.
func (p *Perdure) readAddresses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
	defer cancel()
	body, err := os.ReadFile(p.AddressFile())
	if err != nil {
		return err
	}
	var where addresses
	if err := json.Unmarshal(body, &where); err != nil {
		return fmt.Errorf("addresses.json: %w", err)
	}
	return p.Up(ctx, where)
}

// AddressFile returns the file with the addresses of the process.
func (p *Perdure) AddressFile() string { return filepath.Join(p.data, "addresses.json") }

// Kill kills the process with SIGKILL.
func (p *Perdure) Kill() {
	p.Down()
	p.Process.Kill()
}

// Stop stops the process with SIGTERM and fails if it does not exit cleanly.
func (p *Perdure) Stop() error {
	p.Down()
	return p.Process.Stop()
}

// InspectAndStop inspects the workflows of the process, stops it, and looks for content in its
// database and output.
func (p *Perdure) InspectAndStop(ctx context.Context) error {
	if p.Process == nil || !p.Process.running() {
		return nil
	}
	err := errors.Join(p.inspect(ctx), p.Stop())
	return errors.Join(err, searchDatabase(p.data), p.Output.search())
}

// PostAgent runs the agent of a path and returns its events, without reconnects.
func (p *Perdure) PostAgent(t *testing.T, path string, in Input) []Event {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(p.URL(path), "application/json", strings.NewReader(string(body))) //nolint:bodyclose // WantEvents closes it
	if err != nil {
		t.Fatal(err)
	}
	return WantEvents(t, resp)
}

// RunAs runs the assistant with an API key and returns the events.
func (p *Perdure) RunAs(t *testing.T, key string, in Input) []Event {
	t.Helper()
	p.Threads.Add(in.ThreadID + key)
	return WantEvents(t, p.RequestAs(t, key, http.MethodPost, AssistantPath, in)) //nolint:bodyclose // WantEvents closes it
}
