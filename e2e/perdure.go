package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds every wait: generous, since it is only used up when something is broken.
var patience = 45*time.Second + outageLength

// program is the perdure binary under test.
var program string

// perdure is "perdure dev" on one data directory, over any number of starts.
type perdure struct {
	*endpoint
	data    string
	model   *model
	program string
	addr    string // where it serves; any free port, but another one after each start, unless it is set
	agents  string
	env     []string // beside the usual
	flags   []string
	output  output
	process *process // nil before the first start
}

func newPerdure(data string, m *model) *perdure {
	return &perdure{
		endpoint: newEndpoint(newThreads()), data: data, model: m,
		program: program, addr: "127.0.0.1:0", agents: filepath.Join("testdata", "agents"),
	}
}

// startPerdure starts a process for one test. What it leaves behind is inspected when the test
// ends.
func startPerdure(t *testing.T) *perdure {
	t.Helper()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.keep(t)
	p.start(t)
	return p
}

// startPerdureWith is startPerdure with these definitions alone, which one file has.
func startPerdureWith(t *testing.T, definitions string) *perdure {
	t.Helper()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.agents, "all.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	p.keep(t)
	p.start(t)
	return p
}

// keep has the process inspected and stopped when the test ends.
func (p *perdure) keep(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := p.conclude(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of perdure:\n%s", p.output.String())
		}
	})
}

func (p *perdure) start(t *testing.T) {
	t.Helper()
	if err := p.launch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// command returns the process as a user would start it, with any free ports.
func (p *perdure) command() *exec.Cmd {
	cmd := exec.Command(p.program, "dev", "--addr", p.addr, "--data", p.data,
		"--agents", p.agents, "--temporal-port", "0", "--nats-port", "0")
	cmd.Args = append(cmd.Args, p.flags...)
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, p.model.environ()...)
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

// launch starts the process and waits until it is ready.
func (p *perdure) launch(ctx context.Context) (err error) {
	p.process, err = launch(ctx, p.command(), &p.output, func(line []byte) bool { return string(line) == "Perdure is ready." })
	if err != nil {
		return err
	}
	return p.find(ctx)
}

// find reads where the process serves, and asks it whether it does.
func (p *perdure) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := os.ReadFile(p.addressFile())
	if err != nil {
		return err
	}
	var where addresses
	if err := json.Unmarshal(body, &where); err != nil {
		return fmt.Errorf("addresses.json: %w", err)
	}
	return p.serves(ctx, where)
}

func (p *perdure) addressFile() string { return filepath.Join(p.data, "addresses.json") }

// kill is kill -9.
func (p *perdure) kill() {
	p.down()
	p.process.kill()
}

// stop asks the process to end and fails if it does not end cleanly.
func (p *perdure) stop() error {
	p.down()
	return p.process.stop()
}

// conclude inspects what the process leaves behind, and stops it.
func (p *perdure) conclude(ctx context.Context) error {
	if p.process == nil || !p.process.running() {
		return nil
	}
	err := errors.Join(p.inspect(ctx), p.stop())
	return errors.Join(err, searchDatabase(p.data), p.output.search())
}
