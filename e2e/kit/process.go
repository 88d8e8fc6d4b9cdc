package kit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a process may take to become ready, and stopTimeout how long to exit. A
// worker waits for up to a minute until its version is current, and then reports why it is not.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
)

// Process is a running program.
type Process struct {
	name  string
	Cmd   *exec.Cmd
	ended chan struct{} // closed when the process has exited; err is set then
	err   error
}

// Launch starts a process and waits until ready reports true for a line of its standard output. All
// output goes to out.
func Launch(ctx context.Context, cmd *exec.Cmd, out *Output, ready func(line []byte) bool) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p := &Process{name: filepath.Base(cmd.Path), Cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	announced := make(chan struct{})
	go func() {
		readOutput(io.TeeReader(stdout, out), ready, announced)
		p.err = cmd.Wait()
		close(p.ended)
	}()
	select {
	case <-announced:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it was ready: %w\n%s", p.name, p.err, out.String())
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("%s did not become ready: %w\n%s", p.name, ctx.Err(), out.String())
	}
}

// readOutput reads the standard output to its end and closes announced at the line that is ready.
func readOutput(stdout io.Reader, ready func(line []byte) bool, announced chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if ready(lines.Bytes()) {
			close(announced)
			break
		}
	}
	for lines.Scan() { // a full pipe would stop the process
	}
}

// Kill kills the process with SIGKILL and waits.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.ended
}

// Stop stops the process with SIGTERM and waits. It fails if the process does not exit cleanly in
// time.
func (p *Process) Stop() error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s", p.name, stopTimeout)
	}
	if p.err != nil {
		return fmt.Errorf("%s ended badly: %w", p.name, p.err)
	}
	return nil
}

// Freeze stops the process with SIGSTOP: connections stay open, and requests get no response.
func (p *Process) Freeze(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
}

// Thaw continues a frozen process.
func (p *Process) Thaw(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGCONT)
}

// signal sends a signal to the process.
func (p *Process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// running reports whether the process runs.
func (p *Process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Output keeps the output of processes. It is safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	written chan struct{} // closed by the next Write; nil = nobody waits
	seen    int           // length of the output up to the end of the last awaited text
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written != nil {
		close(o.written)
		o.written = nil
	}
	return o.buf.Write(b)
}

// Await waits until the output has a text after the text of the last Await. It returns the output
// between the two.
func (o *Output) Await(t *testing.T, text string) string {
	t.Helper()
	timeout := time.NewTimer(WaitTimeout)
	defer timeout.Stop()
	for {
		o.mu.Lock()
		rest := o.buf.String()[o.seen:]
		if before, _, ok := strings.Cut(rest, text); ok {
			o.seen += len(before) + len(text)
			o.mu.Unlock()
			return before
		}
		if o.written == nil {
			o.written = make(chan struct{})
		}
		written := o.written
		o.mu.Unlock()
		select {
		case <-written:
		case <-timeout.C:
			t.Fatalf("the output has no %q:\n%s", text, rest)
		}
	}
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// providerErrorBody matches the attribute of a failed model call with the provider's error body, in
// text and JSON logs. It is the only place of a log that may have content.
var providerErrorBody = regexp.MustCompile(`msg(?:=|":)"a model call failed.*(?: message=|"message":)("(?:[^"\\]|\\.)*"|\S+)`)

// search looks for content in the output, for streams that were ended because an event violated
// AG-UI, and for missing permissions of NATS.
func (o *Output) search() error {
	for line := range strings.Lines(o.String()) {
		if at := providerErrorBody.FindStringSubmatchIndex(line); at != nil {
			line = line[:at[2]] + line[at[3]:]
		}
		if strings.Contains(line, Mark) {
			return fmt.Errorf("content in the log: %.300s", line)
		}
		if strings.Contains(strings.ToLower(line), "permissions violation") {
			return fmt.Errorf("a process lacks a permission of NATS: %.300s", line)
		}
		if strings.Contains(line, "AG-UI forbids") {
			return fmt.Errorf("a stream was ended: %.300s", line)
		}
	}
	return nil
}

// Execute runs a command to its end. The error has its output.
func Execute(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", name, dir, err, out)
	}
	return nil
}

// Build runs "go build" in a folder for some packages and flags, without symbols: the linker then
// takes half the time. The error has the output of the compiler.
func Build(dir, output string, args ...string) error {
	return Execute(dir, "go", append([]string{"build", "-ldflags=-s -w", "-o", output}, args...)...)
}
