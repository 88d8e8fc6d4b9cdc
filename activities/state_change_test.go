package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// stateOf returns the state of the thread after a run, with sorted members. It checks that the
// client has the same one.
func (f *fixture) stateOf(events []agui.Event) string {
	f.t.Helper()
	r, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	wantEqual(f.t, "state of the client", string(clientState(f.t, events).State()), string(r.State))
	sorted, err := expression.Encode(expression.Decode(r.State))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(sorted)
}

// TestResultChangesState: the result of a call changes the state as the definition says, in the
// record of the result.
func TestResultChangesState(t *testing.T) {
	t.Parallel()
	weather := tools.Func("weather", "", func(ctx context.Context, in struct{ City string }) (map[string]any, error) {
		return map[string]any{"celsius": 21, "sky": "blue"}, tools.Report(ctx).PatchState(tools.Set("/asked", in.City))
	})
	fixture := setup(t, callOnce("weather", `{"City":"a/b"}`), weather)
	fixture.agent.State.Results = []agents.ResultMapping{{Tool: "weather", Set: []agents.Op{
		{Path: "/weather/${args.City}", Value: "${result}"}, {Path: "/log/-", Value: "${state.asked}: ${result.celsius}"},
	}}}
	events, _ := fixture.run("go")
	if got, want := typesOf(events), "STATE_DELTA STATE_DELTA TOOL_CALL_RESULT"; !strings.Contains(got, want) {
		t.Errorf("events: got %s, want in it %s", got, want)
	}
	wantEqual(t, "state", fixture.stateOf(events), `{"asked":"a/b","log":["a/b: 21"],"weather":{"a/b":{"celsius":21,"sky":"blue"}}}`)
}

// TestParallelResultsChangeState: parallel calls lose no change, although each depends on the state
// that the others change.
func TestParallelResultsChangeState(t *testing.T) {
	t.Parallel()
	const calls = 8
	together := make(chan struct{}, calls)
	all := make(chan struct{})
	tool := tools.Func("count", "", func(ctx context.Context, _ struct{}) (string, error) {
		if together <- struct{}{}; len(together) == calls {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return "text", nil
	})
	fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n > 1 {
			return textAnswer("done")
		}
		var requested [][3]string
		for i := range calls {
			requested = append(requested, [3]string{fmt.Sprint("c", i), "count", "{}"})
		}
		return callAnswer(requested...)
	}, tool)
	fixture.limits.ParallelTools = calls
	fixture.agent.State.Results = []agents.ResultMapping{{Tool: "count", Set: []agents.Op{
		{Path: "/n", Value: `${has(state.n) ? state.n + 1 : 1}`}, {Path: "/list/-", Value: "${result}"},
	}}}
	events, _ := fixture.run("go")
	list := strings.TrimSuffix(strings.Repeat(`"text",`, calls), ",")
	wantEqual(t, "state", fixture.stateOf(events), fmt.Sprintf(`{"list":[%s],"n":%d}`, list, calls))
}

// TestResultThatDoesNotChangeState: a mapping that fails leaves the state and the result as they
// are. Clients and operators learn why, without content.
func TestResultThatDoesNotChangeState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  []agents.Op
		want string
	}{
		"missing member":      {[]agents.Op{{Path: "/first", Value: 1}, {Path: "/x", Value: "${result.temperature}"}}, `set[1]: there is no key \"temperature\"`},
		"operation":           {[]agents.Op{{Op: "remove", Path: "/gone"}}, `set[0]: the change does not apply to the state`},
		"path of a list":      {[]agents.Op{{Path: "/${result.list}", Value: 1}}, `set[0]: a part of the path is a list, not a text or a whole number`},
		"path of outputs":     {[]agents.Op{{Path: "/${result.steps}/a", Value: 1}}, `set[0]: the path \"/${result.steps}/a\" is in /perdure.steps, which has the outputs of steps`},
		"path without a name": {[]agents.Op{{Path: "/${result.empty}", Value: 1}}, `set[0]: the path \"/${result.empty}\" has an empty or too long part`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := tools.Func("weather", "", func(context.Context, struct{}) (map[string]any, error) {
				return map[string]any{"list": []int{1}, "steps": "perdure.steps", "empty": ""}, nil
			})
			fixture := setup(t, callOnce("weather", "{}"), tool)
			fixture.agent.State.Results = []agents.ResultMapping{{Tool: "weather", Set: tt.set}}
			events, _ := fixture.run("go")
			wantEqual(t, "state", fixture.stateOf(events), "{}")
			for _, e := range events {
				if custom, ok := e.(*agui.Custom); ok {
					call := fixture.conversation()[1].ToolCalls[0].ID
					wantEqual(t, "custom event", custom.Name+" "+string(custom.Value), `perdure.stateUnchanged {"reason":"`+tt.want+`","tool":"weather","toolCallId":"`+call+`"}`)
				}
			}
			if got := typesOf(events); !strings.Contains(got, "CUSTOM TOOL_CALL_RESULT") {
				t.Errorf("events = %s, want a custom event before the result", got)
			}
			if got := fixture.logged.String(); !strings.Contains(got, "has not changed the state") {
				t.Errorf("log = %s, want the unchanged state", got)
			}
		})
	}
}

// TestFailedCallDoesNotChangeState: only successful calls change the state.
func TestFailedCallDoesNotChangeState(t *testing.T) {
	t.Parallel()
	fixture := setup(t, callOnce("weather", "{}"), tools.Func("weather", "", func(context.Context, struct{}) (string, error) {
		return "", errors.New("no weather")
	}))
	fixture.agent.State.Results = []agents.ResultMapping{{Tool: "weather", Set: []agents.Op{{Path: "/x", Value: "${result}"}}}}
	events, _ := fixture.run("go")
	wantEqual(t, "state", fixture.stateOf(events), "{}")
}

// TestModelChangesState: the model changes the declared places of the state, and no others.
func TestModelChangesState(t *testing.T) {
	t.Parallel()
	write := []agents.StateWrite{{Path: "/doc/text", Schema: []byte(`{"type":"string"}`)}, {Path: "/notes/-", Argument: "note"}}
	for name, tt := range map[string]struct{ arguments, wantState, wantResult string }{
		"a member and a list": {`{"text":"${1}","note":[2]}`, `{"doc":{"text":"${1}"},"notes":[[2]]}`, "The state was updated."},
		"wrong type":          {`{"text":5}`, `{}`, "string"},
		"other member":        {`{"title":"x"}`, `{}`, "title"},
		"nothing":             {`{}`, `{}`, "argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, callOnce(agents.StateTool, tt.arguments))
			fixture.agent.State.Write = write
			events, _ := fixture.run("go")
			wantEqual(t, "state", fixture.stateOf(events), tt.wantState)
			if got := fixture.conversation()[2].Content.Text(); !strings.Contains(got, tt.wantResult) {
				t.Errorf("result: got %q, want in it %q", got, tt.wantResult)
			}
		})
	}
}

// TestPredictionIsRolledBack: a call that fails leaves the state as it was before the model wrote
// its arguments. A member that has changed since stays.
func TestPredictionIsRolledBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call      func(ctx context.Context, _ struct{ Document, Title string }) (string, error)
		wantState string
	}{
		"success": {func(context.Context, struct{ Document, Title string }) (string, error) { return "", nil }, `{"a/b":"new","title":"T"}`},
		"failure": {func(context.Context, struct{ Document, Title string }) (string, error) { return "", errors.New("no") }, `{"a/b":"old"}`},
		"failure after a change": {func(ctx context.Context, _ struct{ Document, Title string }) (string, error) {
			return "", errors.Join(tools.Report(ctx).PatchState(tools.Set("/title", "mine")), errors.New("no"))
		}, `{"a/b":"old","title":"mine"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, callOnce("write", `{"Document":"new","Title":"T"}`), tools.Func("write", "", tt.call))
			fixture.input.State = []byte(`{"a/b":"old"}`)
			fixture.agent.State.Predict = []agents.Prediction{{Tool: "write", Argument: "Document", Key: "a/b"}, {Tool: "write", Argument: "Title", Key: "title"}}
			events, _ := fixture.run("go")
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			sorted, _ := expression.Encode(expression.Decode(r.State))
			wantEqual(t, "state", string(sorted), tt.wantState)
			for _, e := range r.Entries {
				if e.Predicted != nil {
					t.Errorf("predictions after the agent has continued: got %v, want none", e.Predicted)
				}
			}
			if name == "failure" && !strings.Contains(typesOf(events), "STATE_DELTA TOOL_CALL_RESULT") {
				t.Errorf("events = %s, want a state delta before the result", typesOf(events))
			}
		})
	}
}
