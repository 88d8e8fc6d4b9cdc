package kit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Generation is a version of the reference client.
type Generation struct {
	Name string
	// Legacy: from before AG-UI 1.0, spoken to as such.
	Legacy bool
}

var Generations = []Generation{{Name: "v1"}, {Name: "v0", Legacy: true}}

// Each runs a test with every generation.
func Each(t *testing.T, test func(t *testing.T, g Generation)) {
	t.Helper()
	for _, g := range Generations {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// Script is what drive.mjs is to do.
type Script struct {
	URL       string         `json:"url"`
	ThreadID  string         `json:"threadId"`
	Messages  []Message      `json:"messages,omitempty"`
	Runs      []ScriptedRun  `json:"runs"`
	Reconnect *ReconnectRule `json:"reconnect,omitempty"`
	// Accept asks for a wire; the usual one is server-sent events.
	Accept string `json:"accept,omitempty"`
}

type ScriptedRun struct {
	RunID string `json:"runId"`
	// Messages replaces what the agent has; Add is put behind it.
	Messages []Message `json:"messages,omitempty"`
	Add      []Message `json:"add,omitempty"`
	// Answer has, by the name of a tool, the result for each call of it that has none.
	Answer map[string]string `json:"answer,omitempty"`
	// Resume is the payload that answers each pending interrupt.
	Resume map[string]any `json:"resume,omitempty"`
	// Parameters are more of what runAgent takes, such as tools.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// ReconnectRule lets the agent's fetch come back to a run, see reconnect.mjs.
type ReconnectRule struct {
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
	Messages    []Message       `json:"messages"`
	NewMessages []Message       `json:"newMessages"`
	State       json.RawMessage `json:"state"`
	ContentType string          `json:"contentType"` // if a wire was asked for
	// Of what the client complains about.
	Text string `json:"text"`
	// Of sockets.
	Sockets int `json:"sockets"`
	Code    int `json:"code"`
}

// eventType returns the type of an event's line.
func (l line) eventType() string { return Event{Data: l.Event}.Member("type") }

// Driven is a running client.
type Driven struct {
	cmd      *exec.Cmd
	lines    *bufio.Scanner
	complain Output
	// tolerated complaints are no failure.
	tolerated *regexp.Regexp
	seen      []line
}

// Drive starts a client of a generation. What it complains about fails the test. The agent and a
// new thread go without saying.
func (g Generation) Drive(t *testing.T, p *Perdure, s Script) *Driven {
	t.Helper()
	if s.URL == "" {
		s.URL = p.Url(Assistant)
	}
	if s.ThreadID == "" {
		s.ThreadID = NewThread()
	}
	p.Threads.Use(s.ThreadID)
	return RunNode(t, g.Name, "drive.mjs", s)
}

// RunNode starts a program in node/, with the packages of a folder there, and hands it what it is
// to do.
func RunNode(t *testing.T, packages, name string, todo any) *Driven {
	t.Helper()
	body, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", name))
	cmd.Dir = filepath.Join("node", packages)
	cmd.Stdin = bytes.NewReader(body)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	d := &Driven{cmd: cmd, lines: bufio.NewScanner(stdout)}
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

// Tolerate lets complaints pass that match.
func (d *Driven) Tolerate(pattern string) *Driven {
	d.tolerated = regexp.MustCompile(pattern)
	return d
}

// Next returns the next line, or io.EOF.
func (d *Driven) Next(t *testing.T) (line, error) {
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

// Until waits for the n-th event of a type, counted from here.
func (d *Driven) Until(t *testing.T, eventType string, n int) {
	t.Helper()
	for n > 0 {
		l, err := d.Next(t)
		if err != nil || l.Type == "end" {
			t.Fatalf("%d more %s expected: %v %+v\n%s", n, eventType, err, l, d.complain.String())
		}
		if l.eventType() == eventType {
			n--
		}
	}
}

// Finish waits for the client's end and returns the ends of its runs. All must have been resolved.
func (d *Driven) Finish(t *testing.T) []line {
	t.Helper()
	for {
		if _, err := d.Next(t); err != nil {
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

// Events returns the events of a run that have the type, in order.
func (d *Driven) Events(run int, eventType string) []json.RawMessage {
	var events []json.RawMessage
	for _, l := range d.seen {
		if l.Type == "event" && l.Run == run && l.eventType() == eventType {
			events = append(events, l.Event)
		}
	}
	return events
}

// Types lists the event types of a run, repetitions as one.
func (d *Driven) Types(run int) string {
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

// Talk drives a client through runs of one thread, from its first messages on.
func (g Generation) Talk(t *testing.T, p *Perdure, runs ...ScriptedRun) (*Driven, []line) {
	t.Helper()
	d := g.Drive(t, p, Script{Runs: runs})
	return d, d.Finish(t)
}

// Followed reads what socket.mjs says up to the run's end, and returns that and all its events.
func (d *Driven) Followed(t *testing.T) (end line, events []Event) {
	t.Helper()
	for end.Type != "end" {
		var err error
		if end, err = d.Next(t); err != nil {
			t.Fatal(fmt.Errorf("%w\n%s", err, d.complain.String()))
		}
	}
	for _, l := range d.seen {
		if l.Type == "event" {
			events = append(events, Event{ID: l.Cursor, Type: l.eventType(), Data: l.Event})
		}
	}
	return end, events
}
