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
	"testing"
	"time"
)

// Patience bounds every wait: generous, since it is only used up when something is broken.
var Patience = 45*time.Second + OutageLength

// Program is the perdure binary under test.
var Program string

// Perdure is "perdure dev" on one data directory, over any number of starts.
type Perdure struct {
	*Endpoint
	data    string
	model   *Model
	Program string
	Addr    string // where it serves; any free port, but another one after each start, unless it is set
	Agents  string
	Env     []string // beside the usual
	Flags   []string
	Output  Output
	Process *Process // nil before the first start
}

func NewPerdure(data string, m *Model) *Perdure {
	return &Perdure{
		Endpoint: NewEndpoint(newThreads()), data: data, model: m,
		Program: Program, Addr: "127.0.0.1:0", Agents: filepath.Join("testdata", "agents"),
	}
}

// Setup starts a process for one test. What it leaves behind is inspected when the test
// ends.
func Setup(t *testing.T) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.Keep(t)
	p.Start(t)
	return p
}

// SetupWith is startPerdure with these definitions alone, which one file has.
func SetupWith(t *testing.T, definitions string) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Keep(t)
	p.Start(t)
	return p
}

// Keep has the process inspected and stopped when the test ends.
func (p *Perdure) Keep(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Conclude(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of perdure:\n%s", p.Output.String())
		}
	})
}

func (p *Perdure) Start(t *testing.T) {
	t.Helper()
	if err := p.Launch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Command returns the process as a user would start it, with any free ports.
func (p *Perdure) Command() *exec.Cmd {
	cmd := exec.Command(p.Program, "dev", "--addr", p.Addr, "--data", p.data,
		"--agents", p.Agents, "--temporal-port", "0", "--nats-port", "0")
	cmd.Args = append(cmd.Args, p.Flags...)
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, p.model.Environ()...)
	cmd.Env = append(cmd.Env, p.Env...)
	return cmd
}

// Launch starts the process and waits until it is ready.
func (p *Perdure) Launch(ctx context.Context) (err error) {
	p.Process, err = Launch(ctx, p.Command(), &p.Output, func(line []byte) bool { return string(line) == "Perdure is ready." })
	if err != nil {
		return err
	}
	return p.find(ctx)
}

// find reads where the process serves, and asks it whether it does.
func (p *Perdure) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	body, err := os.ReadFile(p.AddressFile())
	if err != nil {
		return err
	}
	var where addresses
	if err := json.Unmarshal(body, &where); err != nil {
		return fmt.Errorf("addresses.json: %w", err)
	}
	return p.Serves(ctx, where)
}

func (p *Perdure) AddressFile() string { return filepath.Join(p.data, "addresses.json") }

// Kill is kill -9.
func (p *Perdure) Kill() {
	p.Down()
	p.Process.Kill()
}

// Stop asks the process to end and fails if it does not end cleanly.
func (p *Perdure) Stop() error {
	p.Down()
	return p.Process.Stop()
}

// Conclude inspects what the process leaves behind, and stops it.
func (p *Perdure) Conclude(ctx context.Context) error {
	if p.Process == nil || !p.Process.running() {
		return nil
	}
	err := errors.Join(p.inspect(ctx), p.Stop())
	return errors.Join(err, searchDatabase(p.data), p.Output.search())
}

// PostAgent runs an agent and returns its events.
func (p *Perdure) PostAgent(t *testing.T, path string, in Input) []Event {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(p.Url(path), "application/json", strings.NewReader(string(body))) //nolint:bodyclose // WantEvents closes it
	if err != nil {
		t.Fatal(err)
	}
	return WantEvents(t, resp)
}

// RunAs runs an agent for whom a key is, and returns what is streamed.
func (p *Perdure) RunAs(t *testing.T, key string, in Input) []Event {
	t.Helper()
	p.Threads.Use(in.ThreadID + key)
	return WantEvents(t, p.Bearer(t, key, http.MethodPost, Assistant, in)) //nolint:bodyclose // WantEvents closes it
}
