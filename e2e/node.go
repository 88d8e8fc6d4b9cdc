package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// generation is a version of the reference client.
type generation struct {
	name string
	// legacy: from before AG-UI 1.0, spoken to as such.
	legacy bool
}

var generations = []generation{{name: "v1"}, {name: "v0", legacy: true}}

// each runs a test with every generation.
func each(t *testing.T, test func(t *testing.T, g generation)) {
	t.Helper()
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// script is what drive.mjs is to do.
type script struct {
	URL       string         `json:"url"`
	ThreadID  string         `json:"threadId"`
	Messages  []message      `json:"messages,omitempty"`
	Runs      []scriptedRun  `json:"runs"`
	Reconnect *reconnectRule `json:"reconnect,omitempty"`
	// Accept asks for a wire; the usual one is server-sent events.
	Accept string `json:"accept,omitempty"`
}

type scriptedRun struct {
	RunID string `json:"runId"`
	// Messages replaces what the agent has; Add is put behind it.
	Messages []message `json:"messages,omitempty"`
	Add      []message `json:"add,omitempty"`
	// Answer has, by the name of a tool, the result for each call of it that has none.
	Answer map[string]string `json:"answer,omitempty"`
	// Resume is the payload that answers each pending interrupt.
	Resume map[string]any `json:"resume,omitempty"`
	// Parameters are more of what runAgent takes, such as tools.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// reconnectRule lets the agent's fetch come back to a run, see reconnect.mjs.
type reconnectRule struct {
	Addresses string `json:"addresses"`
	Cuts      []int  `json:"cuts,omitempty"`
}

// line is a line of what drive.mjs or socket.mjs says.
type line struct {
	Type string `json:"type"`
	Run  int    `json:"run"`
	// Of an event.
	Event  json.RawMessage `json:"event"`
	Cursor string          `json:"cursor"` // socket.mjs only
	// Of a run's end.
	Outcome     string          `json:"outcome"`
	Error       string          `json:"error"`
	Status      int             `json:"status"`
	Messages    []message       `json:"messages"`
	NewMessages []message       `json:"newMessages"`
	State       json.RawMessage `json:"state"`
	ContentType string          `json:"contentType"` // if a wire was asked for
	// Of what the client complains about.
	Text string `json:"text"`
	// Of sockets.
	Sockets int `json:"sockets"`
	Code    int `json:"code"`
}

// eventType returns the type of an event's line.
func (l line) eventType() string { return event{Data: l.Event}.member("type") }

// driven is a running client.
type driven struct {
	cmd      *exec.Cmd
	lines    *bufio.Scanner
	complain output
	// tolerated complaints are no failure.
	tolerated *regexp.Regexp
	seen      []line
}

// drive starts a client of a generation. What it complains about fails the test. The agent and a
// new thread go without saying.
func (g generation) drive(t *testing.T, p *perdure, s script) *driven {
	t.Helper()
	if s.URL == "" {
		s.URL = p.url(assistant)
	}
	if s.ThreadID == "" {
		s.ThreadID = newThread()
	}
	p.threads.use(s.ThreadID)
	return runNode(t, g.name, "drive.mjs", s)
}

// runNode starts a program in node/, with the packages of a folder there, and hands it what it is
// to do.
func runNode(t *testing.T, packages, name string, todo any) *driven {
	t.Helper()
	body, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", name))
	cmd.Dir = filepath.Join("node", packages)
	cmd.Stdin = bytes.NewReader(body)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	d := &driven{cmd: cmd, lines: bufio.NewScanner(stdout)}
	d.lines.Buffer(nil, 64<<20)
	cmd.Stderr = &d.complain
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // fails where finish has waited
	})
	return d
}

// tolerate lets complaints pass that match.
func (d *driven) tolerate(pattern string) *driven {
	d.tolerated = regexp.MustCompile(pattern)
	return d
}

// next returns the next line, or io.EOF.
func (d *driven) next(t *testing.T) (line, error) {
	t.Helper()
	for d.lines.Scan() {
		var l line
		if err := json.Unmarshal(d.lines.Bytes(), &l); err != nil {
			t.Fatalf("the client says %q: %v", d.lines.Text(), err)
		}
		d.seen = append(d.seen, l)
		if l.Type == "event" || l.Type == "end" || l.Type == "closed" {
			return l, nil
		}
		if d.tolerated == nil || !d.tolerated.MatchString(l.Text) {
			t.Errorf("the client complains: %s: %s", l.Type, l.Text)
		}
	}
	return line{}, errors.Join(io.EOF, d.lines.Err())
}

// until waits for the n-th event of a type, counted from here.
func (d *driven) until(t *testing.T, eventType string, n int) {
	t.Helper()
	for n > 0 {
		l, err := d.next(t)
		if err != nil || l.Type == "end" {
			t.Fatalf("%d more %s expected: %v %+v\n%s", n, eventType, err, l, d.complain.String())
		}
		if l.eventType() == eventType {
			n--
		}
	}
}

// finish waits for the client's end and returns the ends of its runs. All must have been resolved.
func (d *driven) finish(t *testing.T) []line {
	t.Helper()
	for {
		if _, err := d.next(t); err != nil {
			break
		}
	}
	if err := d.cmd.Wait(); err != nil {
		t.Fatalf("the client ended with %v\n%s", err, d.complain.String())
	}
	var ends []line
	for _, l := range d.seen {
		if l.Type != "end" {
			continue
		}
		if l.Outcome != "resolved" {
			t.Fatalf("run %d was %s: %s", l.Run, l.Outcome, l.Error)
		}
		ends = append(ends, l)
	}
	return ends
}

// events returns the events of a run that have the type, in order.
func (d *driven) events(run int, eventType string) []json.RawMessage {
	var events []json.RawMessage
	for _, l := range d.seen {
		if l.Type == "event" && l.Run == run && l.eventType() == eventType {
			events = append(events, l.Event)
		}
	}
	return events
}

// types lists the event types of a run, repetitions as one.
func (d *driven) types(run int) string {
	var types []string
	for _, l := range d.seen {
		if l.Type != "event" || l.Run != run {
			continue
		}
		if kind := l.eventType(); len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
	}
	return strings.Join(types, " ")
}

// talk drives a client through runs of one thread, from its first messages on.
func (g generation) talk(t *testing.T, p *perdure, runs ...scriptedRun) (*driven, []line) {
	t.Helper()
	d := g.drive(t, p, script{Runs: runs})
	return d, d.finish(t)
}
