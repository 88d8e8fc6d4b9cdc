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
	t          *testing.T
	definition *agents.Definition
	state      json.RawMessage
	input      json.RawMessage
	msgs       json.RawMessage
	now        time.Time

	// eventOf returns the event of an action's step, by the action's path.
	eventOf func(a pipeline.Action, n int) pipeline.Event

	// home is the place of the tree's outputs.
	home string
	// after is the step after which the tree begins.
	after string
	// cancelAfter ends the run after that many actions; 0 = never.
	cancelAfter int
	// keepsPositions passes tree positions on unchanged, and not through JSON.
	keepsPositions bool
	deadlines      []time.Time

	// stored is the data that moves have stored, and ended the data that branches have ended with,
	// by record less 1.
	stored []map[string]pipeline.Done
	ended  []pipeline.Ended
	// details are the details of failures, by record.
	details map[uint64]string

	executedActions []string // the paths of actions in order, with their content
	stepEvents      []string // +name for a started step and -name for a finished one
	begins          []begin  // where another run may begin
	attempts        map[string]int
	paths           map[string]bool
	pauses          []time.Duration
}

// begin is a place where another run may begin: after the step with a path, with the state of then.
// actions is the number of actions before it.
type begin struct {
	path    string
	state   json.RawMessage
	actions int
}

// setup returns a fixture whose agent has the given steps, in YAML.
func setup(t *testing.T, steps string) *fixture {
	t.Helper()
	d, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: ['*']\n"+steps))
	if err != nil {
		t.Fatal(err)
	}
	return setupDefinition(t, d)
}

// setupDefinition returns a fixture whose actions succeed.
func setupDefinition(t *testing.T, d *agents.Definition) *fixture {
	return &fixture{
		t: t, definition: d, state: json.RawMessage(`{}`), input: json.RawMessage(`{"threadId":"t"}`),
		msgs: json.RawMessage(`[{"role":"user","content":"hello"},{"role":"assistant","content":"yes?"}]`),
		now:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), attempts: map[string]int{}, paths: map[string]bool{}, details: map[uint64]string{},
		eventOf: func(pipeline.Action, int) pipeline.Event { return doneEvent(`"ok"`) },
	}
}

// doneEvent returns the event of an action with an output.
func doneEvent(output string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventDone, Output: json.RawMessage(output)}
}

// failedEvent returns the event of an action that has failed.
func failedEvent(code string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: "it broke"}}
}

// eventsByPath returns answers by path: JSON, or !code for a failure.
func eventsByPath(byPath map[string]string) func(pipeline.Action, int) pipeline.Event {
	return func(a pipeline.Action, _ int) pipeline.Event {
		answer, ok := byPath[a.Path]
		switch {
		case !ok && a.Approve != nil:
			return doneEvent(`{"approved":true}`)
		case !ok:
			return doneEvent(`"ok"`)
		case strings.HasPrefix(answer, "!"):
			return failedEvent(answer[1:])
		}
		return doneEvent(answer)
	}
}

// run interprets the whole tree.
func (f *fixture) run() *pipeline.Failure {
	f.t.Helper()
	failure, _ := f.runToEnd(nil, nil, pipeline.Ended{})
	return failure
}

// runToEnd advances a tree to its end, and executes its actions.
func (f *fixture) runToEnd(branch []pipeline.BranchRef, items []json.RawMessage, ended pipeline.Ended) (*pipeline.Failure, pipeline.Ended) {
	f.t.Helper()
	at, ev := pipeline.TreePosition{Branch: branch, Home: f.home}, pipeline.Event{Kind: pipeline.EventBegun}
	if branch == nil {
		at.After = f.after
	}
	var open []string
	for range 10_000 {
		if !f.keepsPositions {
			at = f.encodePosition(at)
		}
		m, err := pipeline.Advance(f.definition, at, ev, pipeline.Env{
			Input: f.input, Messages: f.msgs, State: f.state, Items: items, Now: f.now, Ended: ended, Recall: f.recall,
		})
		if err != nil {
			f.t.Fatalf("%v after %v", err, f.executedActions)
		}
		f.storeAdvanced(m)
		open = f.recordChanges(m.Changes, open)
		a := m.Action
		if a.Agent == nil && a.Tool == nil && a.Approve == nil && a.Branches == nil && a.Sleep == 0 {
			if len(open) > 0 {
				f.t.Errorf("open steps at the end = %v, want none", open)
			}
			return a.Failed, pipeline.Ended{Undo: m.Position.Undo, Records: m.Position.Records}
		}
		at, ev = m.Position, f.executeAction(m.Position, a, items)
	}
	f.t.Fatal("the walk does not end")
	return nil, pipeline.Ended{}
}

// storeAdvanced stores the data that an advance keeps, as a record does.
func (f *fixture) storeAdvanced(m pipeline.Advanced) {
	f.t.Helper()
	f.stored = append(f.stored, m.Done)
	failures := m.Position.Failures()
	if m.Action.Failed != nil {
		failures = append(failures, m.Action.Failed)
	}
	for _, failure := range failures {
		if failure.Detailed && failure.Record == 0 {
			failure.Record = uint64(len(f.stored))
			f.details[failure.Record] = failure.Detail
		}
	}
	for path, record := range m.Position.Records {
		if record != 0 {
			continue
		}
		if _, there := m.Done[path]; !there {
			f.t.Errorf("stored result of %s: got none, want one", path)
		}
		m.Position.Records[path] = uint64(len(f.stored))
	}
}

// recall returns the finished step at a path, as the log has it.
func (f *fixture) recall(path string, record uint64) (pipeline.Done, error) {
	done, there := f.stored[record-1][path]
	if !there {
		return done, fmt.Errorf("record %d has nothing of %s", record, path)
	}
	return done, nil
}

// encodePosition returns a tree position after its storage as JSON, with the details that its
// records have.
func (f *fixture) encodePosition(at pipeline.TreePosition) pipeline.TreePosition {
	f.t.Helper()
	raw, err := json.Marshal(at)
	if err != nil {
		f.t.Fatal(err)
	}
	var back pipeline.TreePosition
	if err := json.Unmarshal(raw, &back); err != nil {
		f.t.Fatal(err)
	}
	for _, failure := range back.Failures() {
		failure.Detail = f.details[failure.Record]
	}
	return back
}

// recordChanges applies the changes of the state, and returns the open steps.
func (f *fixture) recordChanges(changes []pipeline.Change, open []string) []string {
	f.t.Helper()
	for _, c := range changes {
		switch {
		case c.Started != "":
			f.stepEvents, open = append(f.stepEvents, "+"+c.Started), append(open, c.Started)
		case c.Finished != "":
			f.stepEvents = append(f.stepEvents, "-"+c.Finished)
			if len(open) == 0 || open[len(open)-1] != c.Finished {
				f.t.Fatalf("finished step = %q, want the last of the open steps %v", c.Finished, open)
			}
			open = open[:len(open)-1]
			if c.Path != "" {
				f.begins = append(f.begins, begin{c.Path, f.state, len(f.executedActions)})
			}
		default:
			state, err := agui.Patch(f.state, c.Patch)
			if err != nil {
				f.t.Fatalf("%s: %v in %s", c.Patch, err, f.state)
			}
			f.state = state
		}
	}
	return open
}

// executeAction returns the event of an action.
func (f *fixture) executeAction(at pipeline.TreePosition, a pipeline.Action, items []json.RawMessage) pipeline.Event {
	f.t.Helper()
	switch {
	case a.Sleep > 0:
		f.pauses = append(f.pauses, a.Sleep)
		f.now = f.now.Add(a.Sleep)
		return pipeline.Event{Kind: pipeline.EventWoken}
	case a.Branches != nil:
		return f.runBranches(at, a, items)
	}
	f.executedActions = append(f.executedActions, describe(a))
	f.deadlines = append(f.deadlines, a.Deadline)
	f.attempts[a.Path]++
	if a.Agent == nil || a.Agent.Repair == "" {
		f.wantNewPath(a.Path)
	}
	if f.cancelAfter > 0 && len(f.executedActions) == f.cancelAfter {
		return pipeline.Event{Kind: pipeline.EventCancelled, Failure: &pipeline.Failure{Code: "cancelled"}}
	}
	return f.eventOf(a, f.attempts[a.Path])
}

var pathRule = regexp.MustCompile(`^[a-z0-9_~/.-]{1,400}$`)

// wantNewPath fails the test if a path occurs again, or is empty.
func (f *fixture) wantNewPath(path string) {
	f.t.Helper()
	if f.paths[path] || !pathRule.MatchString(path) {
		f.t.Errorf("path %q after %v, want a new and valid path", path, f.executedActions)
	}
	f.paths[path] = true
}

// runBranches runs branches one after another, and returns the event of their end.
func (f *fixture) runBranches(at pipeline.TreePosition, a pipeline.Action, items []json.RawMessage) pipeline.Event {
	f.t.Helper()
	f.wantNewPath(a.Path)
	ev := pipeline.Event{Kind: pipeline.EventJoined, Items: a.Branches.Items, Ends: make([]uint64, a.Branches.Count)}
	for i := range a.Branches.Count {
		var item json.RawMessage
		if a.Branches.Items != nil {
			item = a.Branches.Items[i]
		}
		branch := at.Into(a.Path, i)
		var before pipeline.Ended
		if ends := a.Branches.Ends; ends != nil && ends[i] > 0 {
			before = f.ended[ends[i]-1]
		}
		failure, ended := f.runToEnd(branch, append(slices.Clone(items), item), before)
		if failure == nil && len(ended.Undo) > 0 {
			f.ended = append(f.ended, ended)
			ev.Ends[i] = uint64(len(f.ended))
		}
		if failure != nil {
			ev.Branches = append(ev.Branches, pipeline.BranchFailure{Index: i, Failure: *failure})
			if failure.Code == "cancelled" {
				ev.Kind, ev.Failure = pipeline.EventCancelled, failure
				return ev
			}
			if a.Branches.Stop {
				break
			}
		}
	}
	return ev
}

// describe returns an action as a short text.
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

// decodeJSON decodes JSON.
func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
