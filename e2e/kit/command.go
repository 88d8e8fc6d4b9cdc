package kit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// command is a running perdure command that sends its requests to a node.
type command struct {
	*exec.Cmd
	out    *bufio.Reader
	ErrOut bytes.Buffer
}

// StartCommand starts a perdure command against this node.
func (p *Perdure) StartCommand(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.CommandContext(t.Context(), p.Program, args...)}
	c.Env = append(os.Environ(), "PERDURE_URL="+p.URL(""))
	c.Stderr = &c.ErrOut
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	return c
}

// Finish waits until the command exits, checks its exit code, and returns the rest of its output.
func (c *command) Finish(t *testing.T, code int) string {
	t.Helper()
	out, err := io.ReadAll(c.out)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != code {
		t.Errorf("perdure %s exits with %d, want %d\n%s%s", strings.Join(c.Args[1:], " "), got, code, out, c.ErrOut.String())
	}
	return string(out)
}

// Until reads lines of JSON up to and including an event of the type.
func (c *command) Until(t *testing.T, eventType string) {
	t.Helper()
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("before %s: %v\n%s", eventType, err, c.ErrOut.String())
		}
		if ParseEventLine(t, line).Type == eventType {
			return
		}
	}
}

// ParseEventLine returns the event in a line of a command's JSON output.
func ParseEventLine(t *testing.T, line []byte) Event {
	t.Helper()
	var l struct {
		Cursor string
		Event  json.RawMessage
	}
	var head struct{ Type string }
	if err := errors.Join(json.Unmarshal(line, &l), json.Unmarshal(l.Event, &head)); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return Event{ID: l.Cursor, Type: head.Type, Data: l.Event}
}

// NewThreadOf returns a new thread id and registers it as a thread of p.
func NewThreadOf(p *Perdure) string {
	id := NewThread()
	p.Threads.Add(id)
	return id
}

// UntilApproval reads a feed of approvals until the first approval, calls then with its id, and
// interrupts the command.
func (c *command) UntilApproval(t *testing.T, then func(id string)) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	var l struct {
		Event struct{ Approval struct{ ID string } }
	}
	if err = errors.Join(err, json.Unmarshal(line, &l)); err != nil {
		t.Fatal(err)
	}
	then(l.Event.Approval.ID)
	c.Quit(t)
}

// Interrupt sends SIGINT, as Ctrl-C does.
func (c *command) Interrupt(t *testing.T) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// Quit interrupts a command that only reads, and waits for its exit code.
func (c *command) Quit(t *testing.T) {
	t.Helper()
	c.Interrupt(t)
	c.Finish(t, 130)
}
