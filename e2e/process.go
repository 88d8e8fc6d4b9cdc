package e2e

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

// process is a program that runs by itself.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended, with err
	err   error
}

// launch starts a process and waits until it says on its standard output that it is ready: ready is
// given the lines up to then. All that it writes goes to out.
func launch(ctx context.Context, cmd *exec.Cmd, out *output, ready func(line []byte) bool) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	p := &process{name: filepath.Base(cmd.Path), cmd: cmd, ended: make(chan struct{})}
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
		p.kill()
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

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the process to end, as a supervisor would, and waits. It fails if the process does not
// end cleanly.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		p.kill()
		return fmt.Errorf("%s did not stop within %s", p.name, stopPatience)
	}
	if p.err != nil {
		return fmt.Errorf("%s ended badly: %w", p.name, p.err)
	}
	return nil
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// output keeps what processes write. It is safe for concurrent use.
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

// providersWords is the attribute of a failed model call with what the provider said, as text and
// as JSON. It is the only place of the log where the body of an error may be.
var providersWords = regexp.MustCompile(`msg(?:=|":)"a model call failed.*(?: said=|"said":)("(?:[^"\\]|\\.)*"|\S+)`)

// search looks in what was written for content, and for streams that were cut since AG-UI forbids
// what came.
func (o *output) search() error {
	for line := range strings.Lines(o.String()) {
		if at := providersWords.FindStringSubmatchIndex(line); at != nil {
			line = line[:at[2]] + line[at[3]:]
		}
		if strings.Contains(line, mark) {
			return fmt.Errorf("content in the log: %.300s", line)
		}
		if strings.Contains(line, "AG-UI forbids") {
			return fmt.Errorf("a stream was cut: %.300s", line)
		}
	}
	return nil
}

// execute runs a command to its end; what it said is in the error.
func execute(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", name, dir, err, out)
	}
	return nil
}
