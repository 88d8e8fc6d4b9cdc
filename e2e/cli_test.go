package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// command is a command of perdure that asks a node.
type command struct {
	*exec.Cmd
	out    *bufio.Reader
	errOut bytes.Buffer
}

// asks starts a command that asks this node.
func (p *perdure) asks(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.CommandContext(t.Context(), p.program, args...)}
	c.Env = append(os.Environ(), "PERDURE_URL="+p.url(""))
	c.Stderr = &c.errOut
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

// ends waits for a command's end, and returns the rest of what it says.
func (c *command) ends(t *testing.T, code int) string {
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
		t.Errorf("perdure %s exits with %d, want %d\n%s%s", strings.Join(c.Args[1:], " "), got, code, out, c.errOut.String())
	}
	return string(out)
}

// until reads lines of JSON up to and including an event of a type.
func (c *command) until(t *testing.T, eventType string) {
	t.Helper()
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("before %s: %v\n%s", eventType, err, c.errOut.String())
		}
		if eventIn(t, line).Type == eventType {
			return
		}
	}
}

func eventIn(t *testing.T, line []byte) event {
	t.Helper()
	var l struct {
		Cursor string
		Event  json.RawMessage
	}
	var head struct{ Type string }
	if err := errors.Join(json.Unmarshal(line, &l), json.Unmarshal(l.Event, &head)); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return event{ID: l.Cursor, Type: head.Type, Data: l.Event}
}

// A run asks, and one that waits for somebody else's decision goes on when that has come from
// another process.
func TestCommandsDecide(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7")
	thread := newThreadOf(shared)
	asks := shared.asks(t, "run", "careful", prompt, "--thread", thread)
	if out := asks.ends(t, 3); out != "" || !strings.Contains(asks.errOut.String(), "waits for a decision: May calculate be called? calculate") {
		t.Errorf("it says %q, %s", out, asks.errOut.String())
	}
	shared.asks(t, "run", "careful", say("And now?"), "--thread", thread).ends(t, 3)

	follows := shared.asks(t, "tail", "--json", thread)
	follows.until(t, "RUN_FINISHED")
	shared.asks(t, "approve", "int_nothing").ends(t, 6)
	shared.asks(t, "approvals", "watch", "--json", "--thread", thread).firstApproval(t, func(id string) {
		shared.asks(t, "approve", id, "--thread", thread, "--args", `{"expression":"9+9"}`).ends(t, 0)
		shared.asks(t, "reject", id, "--thread", thread).ends(t, 7)
	})
	follows.until(t, "RUN_FINISHED")
	follows.leave(t)

	other := newThreadOf(shared)
	waits := shared.asks(t, "run", "careful", prompt, "--wait", "--thread", other)
	shared.asks(t, "approvals", "watch", "--json", "--thread", other).firstApproval(t, func(id string) {
		shared.asks(t, "reject", id, "--thread", other, "--reason", say("too dear")).ends(t, 0)
	})
	if out := waits.ends(t, 0); out != done+"\n" {
		t.Errorf("the answer is %q, want %q", out, done)
	}
	shown := shared.asks(t, "tail", "--no-follow", thread).ends(t, 0)
	for _, want := range []string{"> " + prompt, `→ calculate {"expression":"9+9"}`, "← 18", done} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("the thread's history lacks %q:\n%s", want, shown)
		}
	}
}

func newThreadOf(p *perdure) string {
	id := newThread()
	p.threads.use(id)
	return id
}

// firstApproval reads a feed until something waits, and stops it.
func (c *command) firstApproval(t *testing.T, then func(id string)) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	var l struct {
		Event struct{ Approval struct{ ID string } }
	}
	if err = errors.Join(err, json.Unmarshal(line, &l)); err != nil {
		t.Fatal(err)
	}
	then(l.Event.Approval.ID)
	c.leave(t)
}

// interrupt is Ctrl-C.
func (c *command) interrupt(t *testing.T) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// leave is Ctrl-C of a command that only looks.
func (c *command) leave(t *testing.T) {
	t.Helper()
	c.interrupt(t)
	c.ends(t, 130)
}

// The server is killed in mid-stream and comes back: a command goes on where it was, and what it
// writes to a pipe holds nothing of what the dead attempt said.
func TestCommandsOutliveTheServer(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.addr = "127.0.0.1:" + strconv.Itoa(freePorts(t, 1)[0])
	p.keep(t)
	p.start(t)
	prompt, answer := say("Slowly, please."), long(300)
	sharedModel.attempts(t, prompt, pours(strings.Repeat(dead, lifetime)), pours(strings.Repeat(dead, lifetime)), answers(answer), answers(answer))
	thread := newThreadOf(p)
	tail := p.asks(t, "tail", thread, "--json")
	text := p.asks(t, "run", "assistant", prompt, "--thread", thread)
	events := p.asks(t, "run", "assistant", prompt, "--json", "--thread", newThreadOf(p))
	tail.until(t, "TEXT_MESSAGE_CONTENT")
	tail.leave(t)
	events.until(t, "TEXT_MESSAGE_CONTENT")
	p.kill()
	p.start(t)
	rest := events.ends(t, 0)
	if out := text.ends(t, 0); out != answer+"\n" {
		t.Errorf("the answer is %.200q, want %.200q", out, answer)
	}
	var types []string
	last := ""
	for line := range strings.Lines(rest) {
		e := eventIn(t, []byte(line))
		if types = append(types, e.Type); e.ID <= last {
			t.Errorf("the cursor %q follows %q", e.ID, last)
		}
		last = e.ID
	}
	if all := strings.Join(types, " "); !strings.Contains(all, "MESSAGES_SNAPSHOT TEXT_MESSAGE_START") || !strings.HasSuffix(all, "RUN_FINISHED") {
		t.Errorf("after the kill came %s", all)
	}
}

func TestCommandsExit(t *testing.T) {
	t.Parallel()
	slow, failing := say("Slowly, please."), say("Fail.")
	sharedModel.attempts(t, slow, pours(long(4000)))
	sharedModel.attempts(t, failing, fails(400))
	shared.asks(t, "run", "nobody", "hi").ends(t, 6)
	shared.asks(t, "run", "demo").ends(t, 2)
	shared.asks(t, "run", "demo", "hi", "--url", "http://127.0.0.1:1").ends(t, 5)
	shared.asks(t, "steer", newThread(), "hi").ends(t, 7)
	shared.asks(t, "run", "assistant", failing, "--thread", newThreadOf(shared)).ends(t, 1)

	thread := newThreadOf(shared)
	left := shared.asks(t, "run", "assistant", slow, "--run", "run-1", "--json", "--thread", thread)
	left.until(t, "TEXT_MESSAGE_CONTENT")
	left.leave(t)
	again := shared.asks(t, "run", "assistant", slow, "--run", "run-1", "--cancel-on-interrupt", "--json", "--thread", thread)
	again.until(t, "TEXT_MESSAGE_CONTENT")
	again.interrupt(t)
	again.ends(t, 4)
}
