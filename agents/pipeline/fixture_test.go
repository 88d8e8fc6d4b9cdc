package pipeline_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
)

// fixture executes the actions of a tree: agents, tools and approvers answer as the test says.
type fixture struct {
	t     *testing.T
	d     *agents.Definition
	state json.RawMessage
	input json.RawMessage
	msgs  json.RawMessage
	now   time.Time

	// answer returns the event of an action's step, by the action's path.
	answer func(a pipeline.Action, n int) pipeline.Event

	// home is the place of the tree's outputs.
	home string
	// cancel ends the run after that many actions; 0 = never.
	cancel int
	// straight passes cursors on unchanged, and not through JSON.
	straight  bool
	deadlines []time.Time

	// kept is the data that moves have stored, and ended the data that branches have ended with, by
	// record less 1.
	kept  []map[string]pipeline.Done
	ended []pipeline.Ended
	// details are the details of failures, by record.
	details map[uint64]string

	did        []string // the paths of actions in order, with their content
	stepEvents []string // +name for a started step and -name for a finished one
	asked      map[string]int
	paths      map[string]bool
	slept      []time.Duration
}

func setup(t *testing.T, steps string) *fixture {
	t.Helper()
	d, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: ['*']\n"+steps))
	if err != nil {
		t.Fatal(err)
	}
	return setupDefinition(t, d)
}

func setupDefinition(t *testing.T, d *agents.Definition) *fixture {
	return &fixture{
		t: t, d: d, state: json.RawMessage(`{}`), input: json.RawMessage(`{"threadId":"t"}`),
		msgs: json.RawMessage(`[{"role":"user","content":"hello"},{"role":"assistant","content":"yes?"}]`),
		now:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), asked: map[string]int{}, paths: map[string]bool{}, details: map[uint64]string{},
		answer: func(pipeline.Action, int) pipeline.Event { return done(`"ok"`) },
	}
}

func done(output string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventDone, Output: json.RawMessage(output)}
}

func failed(code string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: "it broke"}}
}

// answers returns answers by path: JSON, or !code for a failure.
func answers(byPath map[string]string) func(pipeline.Action, int) pipeline.Event {
	return func(a pipeline.Action, _ int) pipeline.Event {
		answer, ok := byPath[a.Path]
		switch {
		case !ok && a.Approve != nil:
			return done(`{"approved":true}`)
		case !ok:
			return done(`"ok"`)
		case strings.HasPrefix(answer, "!"):
			return failed(answer[1:])
		}
		return done(answer)
	}
}

// run interprets the whole tree.
func (w *fixture) run() *pipeline.Failure {
	w.t.Helper()
	f, _ := w.walk(nil, nil, pipeline.Ended{})
	return f
}

func (w *fixture) walk(branch []pipeline.BranchRef, items []json.RawMessage, ended pipeline.Ended) (*pipeline.Failure, pipeline.Ended) {
	w.t.Helper()
	at, ev := pipeline.Cursor{Branch: branch, Home: w.home}, pipeline.Event{Kind: pipeline.EventBegun}
	var open []string
	for range 10_000 {
		if !w.straight {
			at = w.through(at)
		}
		m, err := pipeline.Advance(w.d, at, ev, pipeline.Env{
			Input: w.input, Messages: w.msgs, State: w.state, Items: items, Now: w.now, Ended: ended, Recall: w.recall,
		})
		if err != nil {
			w.t.Fatalf("%v after %v", err, w.did)
		}
		w.keep(m)
		open = w.tell(m.Changes, open)
		a := m.Action
		if a.Agent == nil && a.Tool == nil && a.Approve == nil && a.Branches == nil && a.Sleep == 0 {
			if len(open) > 0 {
				w.t.Errorf("still open at the end: %v", open)
			}
			return a.Failed, pipeline.Ended{Undo: m.Cursor.Undo, Records: m.Cursor.Records}
		}
		at, ev = m.Cursor, w.do(m.Cursor, a, items)
	}
	w.t.Fatal("the walk does not end")
	return nil, pipeline.Ended{}
}

// keep stores the data that a move keeps, as a record does.
func (w *fixture) keep(m pipeline.Move) {
	w.t.Helper()
	w.kept = append(w.kept, m.Done)
	failures := m.Cursor.Failures()
	if m.Action.Failed != nil {
		failures = append(failures, m.Action.Failed)
	}
	for _, f := range failures {
		if f.Detailed && f.Record == 0 {
			f.Record = uint64(len(w.kept))
			w.details[f.Record] = f.Detail
		}
	}
	for path, record := range m.Cursor.Records {
		if record != 0 {
			continue
		}
		if _, there := m.Done[path]; !there {
			w.t.Errorf("nothing is kept of %s", path)
		}
		m.Cursor.Records[path] = uint64(len(w.kept))
	}
}

func (w *fixture) recall(path string, record uint64) (pipeline.Done, error) {
	done, there := w.kept[record-1][path]
	if !there {
		return done, fmt.Errorf("record %d has nothing of %s", record, path)
	}
	return done, nil
}

// through returns a cursor after its storage as JSON, with the details that its records have.
func (w *fixture) through(at pipeline.Cursor) pipeline.Cursor {
	w.t.Helper()
	raw, err := json.Marshal(at)
	if err != nil {
		w.t.Fatal(err)
	}
	var back pipeline.Cursor
	if err := json.Unmarshal(raw, &back); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range back.Failures() {
		f.Detail = w.details[f.Record]
	}
	return back
}

func (w *fixture) tell(changes []pipeline.Change, open []string) []string {
	w.t.Helper()
	for _, c := range changes {
		switch {
		case c.Started != "":
			w.stepEvents, open = append(w.stepEvents, "+"+c.Started), append(open, c.Started)
		case c.Finished != "":
			w.stepEvents = append(w.stepEvents, "-"+c.Finished)
			if len(open) == 0 || open[len(open)-1] != c.Finished {
				w.t.Fatalf("%q finished while %v was open", c.Finished, open)
			}
			open = open[:len(open)-1]
		default:
			state, err := agui.Patch(w.state, c.Patch)
			if err != nil {
				w.t.Fatalf("%s: %v in %s", c.Patch, err, w.state)
			}
			w.state = state
		}
	}
	return open
}

func (w *fixture) do(at pipeline.Cursor, a pipeline.Action, items []json.RawMessage) pipeline.Event {
	w.t.Helper()
	switch {
	case a.Sleep > 0:
		w.slept = append(w.slept, a.Sleep)
		w.now = w.now.Add(a.Sleep)
		return pipeline.Event{Kind: pipeline.EventWoken}
	case a.Branches != nil:
		return w.fork(at, a, items)
	}
	w.did = append(w.did, describe(a))
	w.deadlines = append(w.deadlines, a.Deadline)
	w.asked[a.Path]++
	if a.Agent == nil || a.Agent.Repair == "" {
		w.once(a.Path)
	}
	if w.cancel > 0 && len(w.did) == w.cancel {
		return pipeline.Event{Kind: pipeline.EventCancelled, Failure: &pipeline.Failure{Code: "cancelled"}}
	}
	return w.answer(a, w.asked[a.Path])
}

var pathRule = regexp.MustCompile(`^[a-z0-9_~/.-]{1,400}$`)

// once fails the test if a path occurs again, or is empty.
func (w *fixture) once(path string) {
	w.t.Helper()
	if w.paths[path] || !pathRule.MatchString(path) {
		w.t.Errorf("path %q after %v", path, w.did)
	}
	w.paths[path] = true
}

func (w *fixture) fork(at pipeline.Cursor, a pipeline.Action, items []json.RawMessage) pipeline.Event {
	w.t.Helper()
	w.once(a.Path)
	ev := pipeline.Event{Kind: pipeline.EventJoined, Items: a.Branches.Items, Ends: make([]uint64, a.Branches.Count)}
	for i := range a.Branches.Count {
		var item json.RawMessage
		if a.Branches.Items != nil {
			item = a.Branches.Items[i]
		}
		branch := at.Into(a.Path, i)
		var before pipeline.Ended
		if ends := a.Branches.Ends; ends != nil && ends[i] > 0 {
			before = w.ended[ends[i]-1]
		}
		f, ended := w.walk(branch, append(slices.Clone(items), item), before)
		if f == nil && len(ended.Undo) > 0 {
			w.ended = append(w.ended, ended)
			ev.Ends[i] = uint64(len(w.ended))
		}
		if f != nil {
			ev.Branches = append(ev.Branches, pipeline.BranchFailure{Index: i, Failure: *f})
			if f.Code == "cancelled" {
				ev.Kind, ev.Failure = pipeline.EventCancelled, f
				return ev
			}
			if a.Branches.Stop {
				break
			}
		}
	}
	return ev
}

func describe(a pipeline.Action) string {
	switch {
	case a.Tool != nil:
		return fmt.Sprintf("%s %s%s", a.Path, a.Tool.Tool, a.Tool.Args)
	case a.Approve != nil:
		return fmt.Sprintf("%s ? %s%s", a.Path, a.Approve.Message, a.Approve.Args)
	case a.Agent.Prompt != nil:
		return fmt.Sprintf("%s @%s: %s", a.Path, a.Agent.Name, *a.Agent.Prompt)
	}
	return fmt.Sprintf("%s @%s", a.Path, a.Agent.Name)
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
