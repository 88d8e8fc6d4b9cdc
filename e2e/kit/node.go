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
	// Legacy is true for clients from before AG-UI 1.0.
	Legacy bool
}

// Generations are the versions of the reference client that tests use.
var Generations = []Generation{{Name: "v1"}, {Name: "v0", Legacy: true}}

// EachGeneration runs a test in parallel with each generation.
func EachGeneration(t *testing.T, test func(t *testing.T, g Generation)) {
	t.Helper()
	for _, g := range Generations {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// Script is the input of drive.mjs.
type Script struct {
	URL       string         `json:"url"`
	ThreadID  string         `json:"threadId"`
	Messages  []Message      `json:"messages,omitempty"`
	Runs      []ScriptedRun  `json:"runs"`
	Reconnect *ReconnectRule `json:"reconnect,omitempty"`
	// Accept is the Accept header; "" = server-sent events.
	Accept string `json:"accept,omitempty"`
}

// ScriptedRun is one run of a script.
type ScriptedRun struct {
	RunID string `json:"runId"`
	// Messages replaces the agent's messages. Add is appended to them.
	Messages []Message `json:"messages,omitempty"`
	Add      []Message `json:"add,omitempty"`
	// Answer has a result by tool name, for each open call of the tool.
	Answer map[string]string `json:"answer,omitempty"`
	// Resume is the payload that resolves each open interrupt.
	Resume map[string]any `json:"resume,omitempty"`
	// Parameters are further parameters of runAgent, such as tools.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// ReconnectRule makes the agent's fetch reconnect, see reconnect.mjs.
type ReconnectRule struct {
	Addresses string `json:"addresses"`
	Cuts      []int  `json:"cuts,omitempty"`
}

// clientLine is a line that drive.mjs or socket.mjs prints.
type clientLine struct {
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
	// Of a console message.
	Text string `json:"text"`
	// Of sockets.
	Sockets int `json:"sockets"`
	Code    int `json:"code"`
}

// eventType returns the type of the event in the line.
func (l clientLine) eventType() string { return Event{Data: l.Event}.Member("type") }

// ClientProcess is a running client program.
type ClientProcess struct {
	cmd        *exec.Cmd
	lines      *bufio.Scanner
	complaints Output
	// tolerated matches console messages that do not fail the test.
	tolerated *regexp.Regexp
	seen      []clientLine
}

// Drive starts a client of the generation. Its console messages fail the test. The URL defaults to
// the assistant's, the thread to a new one.
func (g Generation) Drive(t *testing.T, p *Perdure, s Script) *ClientProcess {
	t.Helper()
	if s.URL == "" {
		s.URL = p.URL(AssistantPath)
	}
	if s.ThreadID == "" {
		s.ThreadID = NewThread()
	}
	p.Threads.Add(s.ThreadID)
	return StartNode(t, g.Name, "drive.mjs", s)
}

// StartNode starts a program in node/ with the packages of a directory there, and sends it its
// input.
func StartNode(t *testing.T, packages, name string, input any) *ClientProcess {
	t.Helper()
	body, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", name))
	cmd.Dir = filepath.Join("node", packages)
	cmd.Stdin = bytes.NewReader(body)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	d := &ClientProcess{cmd: cmd, lines: bufio.NewScanner(stdout)}
	d.lines.Buffer(nil, 64<<20)
	cmd.Stderr = &d.complaints
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

// Tolerate accepts console messages that match a pattern.
func (d *ClientProcess) Tolerate(pattern string) *ClientProcess {
	d.tolerated = regexp.MustCompile(pattern)
	return d
}

// Next returns the next line, or io.EOF.
func (d *ClientProcess) Next(t *testing.T) (clientLine, error) {
	t.Helper()
	for d.lines.Scan() {
		var l clientLine
		if err := json.Unmarshal(d.lines.Bytes(), &l); err != nil {
			t.Fatalf("the client printed %q: %v", d.lines.Text(), err)
		}
		d.seen = append(d.seen, l)
		if l.Type == "event" || l.Type == "end" || l.Type == "closed" {
			return l, nil
		}
		if d.tolerated == nil || !d.tolerated.MatchString(l.Text) {
			t.Errorf("console message of the client = %s: %s, want none", l.Type, l.Text)
		}
	}
	return clientLine{}, errors.Join(io.EOF, d.lines.Err())
}

// Until reads until the n-th event of a type from here.
func (d *ClientProcess) Until(t *testing.T, eventType string, n int) {
	t.Helper()
	for n > 0 {
		l, err := d.Next(t)
		if err != nil || l.Type == "end" {
			t.Fatalf("want %d more %s, got %v %+v\n%s", n, eventType, err, l, d.complaints.String())
		}
		if l.eventType() == eventType {
			n--
		}
	}
}

// Finish waits until the client exits and returns the ends of its runs. All runs must have been
// resolved.
func (d *ClientProcess) Finish(t *testing.T) []clientLine {
	t.Helper()
	for {
		if _, err := d.Next(t); err != nil {
			break
		}
	}
	if err := d.cmd.Wait(); err != nil {
		t.Fatalf("the client ended with %v\n%s", err, d.complaints.String())
	}
	var ends []clientLine
	for _, l := range d.seen {
		if l.Type != "end" {
			continue
		}
		if l.Outcome != "resolved" {
			t.Fatalf("run %d was %s: %s, want resolved", l.Run, l.Outcome, l.Error)
		}
		ends = append(ends, l)
	}
	return ends
}

// Events returns the events of a run that have the type, in order.
func (d *ClientProcess) Events(run int, eventType string) []json.RawMessage {
	var events []json.RawMessage
	for _, l := range d.seen {
		if l.Type == "event" && l.Run == run && l.eventType() == eventType {
			events = append(events, l.Event)
		}
	}
	return events
}

// Types returns the event types of a run, with repetitions collapsed.
func (d *ClientProcess) Types(run int) string {
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

// Run runs a thread with a client of the generation, from its first message on.
func (g Generation) Run(t *testing.T, p *Perdure, runs ...ScriptedRun) (*ClientProcess, []clientLine) {
	t.Helper()
	d := g.Drive(t, p, Script{Runs: runs})
	return d, d.Finish(t)
}

// UntilEnd reads the output of socket.mjs up to the end of the run, and returns the end and all
// events.
func (d *ClientProcess) UntilEnd(t *testing.T) (end clientLine, events []Event) {
	t.Helper()
	for end.Type != "end" {
		var err error
		if end, err = d.Next(t); err != nil {
			t.Fatal(fmt.Errorf("%w\n%s", err, d.complaints.String()))
		}
	}
	for _, l := range d.seen {
		if l.Type == "event" {
			events = append(events, Event{ID: l.Cursor, Type: l.eventType(), Data: l.Event})
		}
	}
	return end, events
}
