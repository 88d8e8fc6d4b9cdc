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
	"time"
)

// startPatience is how long a process may take until it is ready, and stopPatience until it has
// ended that was asked to. A worker waits for a minute until its version is current, and says then
// why it is not.
const (
	startPatience = 90 * time.Second
	stopPatience  = 20 * time.Second
)

// Process is a program that runs by itself.
type Process struct {
	name  string
	Cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended, with err
	err   error
}

// Launch starts a process and waits until it says on its standard output that it is ready: ready is
// given the lines up to then. All that it writes goes to out.
func Launch(ctx context.Context, cmd *exec.Cmd, out *Output, ready func(line []byte) bool) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
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

// readOutput reads what a process says to its end, and tells when it says that it is ready.
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

// Kill is kill -9.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.ended
}

// Stop asks the process to end, as a supervisor would, and waits. It fails if the process does not
// end cleanly.
func (p *Process) Stop() error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s", p.name, stopPatience)
	}
	if p.err != nil {
		return fmt.Errorf("%s ended badly: %w", p.name, p.err)
	}
	return nil
}

// running reports whether the process has not ended.
func (p *Process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Output keeps what processes write. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// providersWords is the attribute of a failed model call with what the provider said, as text and
// as JSON. It is the only place of the log where the body of an error may be.
var providersWords = regexp.MustCompile(`msg(?:=|":)"a model call failed.*(?: said=|"said":)("(?:[^"\\]|\\.)*"|\S+)`)

// search looks in what was written for content, and for streams that were cut since AG-UI forbids
// what came.
func (o *Output) search() error {
	for line := range strings.Lines(o.String()) {
		if at := providersWords.FindStringSubmatchIndex(line); at != nil {
			line = line[:at[2]] + line[at[3]:]
		}
		if strings.Contains(line, Mark) {
			return fmt.Errorf("content in the log: %.300s", line)
		}
		if strings.Contains(line, "AG-UI forbids") {
			return fmt.Errorf("a stream was cut: %.300s", line)
		}
	}
	return nil
}

// Execute runs a command to its end; what it said is in the error.
func Execute(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", name, dir, err, out)
	}
	return nil
}
