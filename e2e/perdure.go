package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait: generous, since it is only used up when something is broken.
const patience = 45 * time.Second

// program is the perdure binary under test.
var program string

// perdure is "perdure dev" on one data directory, over any number of starts.
type perdure struct {
	data   string
	model  *model
	env    []string // beside the usual
	output output

	mu    sync.Mutex
	used  map[string]bool // threads on which tests have begun runs
	up    chan struct{}   // closed while the process serves
	where addresses
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended, with err
	err   error
}

// addresses is what <data>/addresses.json holds.
type addresses struct {
	API       string `json:"api"`
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
	NATS      string `json:"nats"`
}

func newPerdure(data string, m *model) *perdure {
	return &perdure{data: data, model: m, up: make(chan struct{}), used: map[string]bool{}}
}

// startPerdure starts a process for one test. What it leaves behind is inspected when the test ends.
func startPerdure(t *testing.T) *perdure {
	t.Helper()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
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

// command is the process as a user would start it, with any free ports.
func (p *perdure) command() *exec.Cmd {
	cmd := exec.Command(program, "dev", "--addr", "127.0.0.1:0", "--data", p.data,
		"--agents", filepath.Join("testdata", "agents"), "--temporal-port", "0", "--nats-port", "0")
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+p.model.url+"/v1")
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

// launch starts the process and waits until it is ready.
func (p *perdure) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := p.command()
	cmd.Stderr = &p.output
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	announced, ended := make(chan struct{}), make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		p.copyOutput(stdout, announced)
		p.err = cmd.Wait()
		close(ended)
	}()
	select {
	case <-announced:
	case <-ended:
		return fmt.Errorf("perdure ended before it was ready: %w\n%s", p.err, p.output.String())
	case <-ctx.Done():
		return fmt.Errorf("perdure did not become ready: %w\n%s", ctx.Err(), p.output.String())
	}
	return p.find(ctx)
}

// copyOutput keeps what the process says and tells when it says that it is ready.
func (p *perdure) copyOutput(stdout io.Reader, announced chan<- struct{}) {
	lines := bufio.NewScanner(io.TeeReader(stdout, &p.output))
	for lines.Scan() {
		if lines.Text() == "Perdure is ready." {
			close(announced)
		}
	}
}

// find reads where the process serves, and asks it whether it does.
func (p *perdure) find(ctx context.Context) error {
	body, err := os.ReadFile(p.addressFile())
	if err != nil {
		return err
	}
	var where addresses
	if err := json.Unmarshal(body, &where); err != nil {
		return fmt.Errorf("addresses.json: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.API+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("perdure says that it is ready, /readyz says %s", resp.Status)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where = where
	close(p.up)
	return nil
}

func (p *perdure) addressFile() string { return filepath.Join(p.data, "addresses.json") }

// addresses waits until the process serves and tells where.
func (p *perdure) addresses(ctx context.Context) (addresses, error) {
	p.mu.Lock()
	up := p.up
	p.mu.Unlock()
	select {
	case <-up:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.where, nil
	case <-ctx.Done():
		return addresses{}, fmt.Errorf("perdure is not up: %w", ctx.Err())
	}
}

// use notes that a thread has a workflow.
func (p *perdure) use(thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[thread] = true
}

// url is an address of the api in the process that runs now.
func (p *perdure) url(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where.API + path
}

// kill is kill -9.
func (p *perdure) kill(t *testing.T) {
	t.Helper()
	p.down()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}

func (p *perdure) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = make(chan struct{})
}

// stopPatience is how long a process may take to end that was asked to.
const stopPatience = 10 * time.Second

// stop asks the process to end, as a supervisor would, and waits. It fails if the process does not
// end cleanly.
func (p *perdure) stop() error {
	p.down()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("perdure did not stop within %s", stopPatience)
	}
	if p.err != nil {
		return fmt.Errorf("perdure ended badly: %w", p.err)
	}
	return nil
}

// running tells whether the process has been started and has not ended.
func (p *perdure) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// conclude inspects what the process leaves behind, and stops it.
func (p *perdure) conclude(ctx context.Context) error {
	if !p.running() {
		return nil
	}
	err := errors.Join(p.inspect(ctx), p.stop())
	return errors.Join(err, p.searchDatabase(), p.searchOutput())
}

// searchOutput looks for content in what the process logged.
func (p *perdure) searchOutput() error {
	for line := range strings.Lines(p.output.String()) {
		if strings.Contains(line, mark) {
			return fmt.Errorf("content in the log: %.300s", line)
		}
	}
	return nil
}

// output keeps what a process writes. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
