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

// command is a command of perdure that asks a node.
type command struct {
	*exec.Cmd
	out    *bufio.Reader
	ErrOut bytes.Buffer
}

// Asks starts a command that asks this node.
func (p *Perdure) Asks(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.CommandContext(t.Context(), p.Program, args...)}
	c.Env = append(os.Environ(), "PERDURE_URL="+p.Url(""))
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

// Ends waits for a command's end, and returns the rest of what it says.
func (c *command) Ends(t *testing.T, code int) string {
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

// Until reads lines of JSON up to and including an event of a type.
func (c *command) Until(t *testing.T, eventType string) {
	t.Helper()
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("before %s: %v\n%s", eventType, err, c.ErrOut.String())
		}
		if EventIn(t, line).Type == eventType {
			return
		}
	}
}

func EventIn(t *testing.T, line []byte) Event {
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

func NewThreadOf(p *Perdure) string {
	id := NewThread()
	p.Threads.Use(id)
	return id
}

// FirstApproval reads a feed until something waits, and stops it.
func (c *command) FirstApproval(t *testing.T, then func(id string)) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	var l struct {
		Event struct{ Approval struct{ ID string } }
	}
	if err = errors.Join(err, json.Unmarshal(line, &l)); err != nil {
		t.Fatal(err)
	}
	then(l.Event.Approval.ID)
	c.Leave(t)
}

// Interrupt is Ctrl-C.
func (c *command) Interrupt(t *testing.T) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// Leave is Ctrl-C of a command that only looks.
func (c *command) Leave(t *testing.T) {
	t.Helper()
	c.Interrupt(t)
	c.Ends(t, 130)
}
