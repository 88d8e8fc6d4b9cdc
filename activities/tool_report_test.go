package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// clientState returns the state of a reference client that is shown the events.
func clientState(t *testing.T, events []agui.Event) *agui.Reducer {
	t.Helper()
	screen := agui.NewReducer([]agui.Message{{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("go")}}, nil)
	for _, e := range events {
		if err := screen.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	w := screen.Warnings()
	wantEqual(t, "number of warnings of the client", len(w), 0)
	return screen
}

// wantThreadEqualsClient checks that the thread equals the client's messages and state.
func (f *fixture) wantThreadEqualsClient(events []agui.Event) *snapshot.Snapshot {
	f.t.Helper()
	screen := clientState(f.t, events)
	r, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	if got, want := asJSON(f.t, screen.Messages()), asJSON(f.t, r.Messages()); got != want {
		f.t.Errorf("messages of the client: got\n%s, want those of the log\n%s", got, want)
	}
	if got, want := string(screen.State()), string(r.State); got != want {
		f.t.Errorf("state of the client: got %s, want %s", got, want)
	}
	return r
}

// asJSON encodes a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// callOnce makes the model call a tool once and then answer "done".
func callOnce(tool, arguments string) script {
	return func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"x", tool, arguments})
		}
		return textAnswer("done")
	}
}

func TestToolReportsReachClients(t *testing.T) {
	t.Parallel()
	search := tools.Func("search", "searches", func(ctx context.Context, _ struct{}) (string, error) {
		r := tools.Report(ctx)
		return "found", errors.Join(
			r.Activity("progress", "search-progress", map[string]any{"found": 0, "in": "<shop>"}),
			r.PatchActivity("progress", tools.Op{Op: "replace", Path: "/found", Value: 3}),
			r.PatchState(tools.Set("/hits", []string{}), tools.Append("/hits", "a")),
			r.PatchState(tools.Append("/hits", "b"), tools.Set("/gone", 1)),
			r.PatchState(tools.Remove("/gone")),
			r.Custom("shop.note", nil),
			r.Raw("shop", json.RawMessage(`{"seen": 1}`)),
		)
	})
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		for _, m := range req.Messages {
			if n == 2 && strings.Contains(fmt.Sprint(m), "search-progress") {
				t.Errorf("message sent to the model: got the activity %+v, want none", m)
			}
		}
		return callOnce("search", "{}")(n, req)
	}, search)
	events, _ := fixture.run("go")
	want := "ACTIVITY_SNAPSHOT ACTIVITY_DELTA STATE_DELTA STATE_DELTA STATE_DELTA CUSTOM RAW TOOL_CALL_RESULT"
	if got := typesOf(events); !strings.Contains(got, want) {
		t.Errorf("events: got\n%s, want in it\n%s", got, want)
	}
	r := fixture.wantThreadEqualsClient(events)
	if got, want := string(r.State), `{"hits":["a","b"]}`; got != want {
		t.Errorf("state: got %s, want %s", got, want)
	}
	shown := r.Entries[3].Message
	wantEqual(t, "type of the activity message", shown.ActivityType, "search-progress")
	wantEqual(t, "content of the activity message", string(shown.Content.Object()), `{"found":3,"in":"<shop>"}`)
	wantEqual(t, "ID of the activity message", shown.ID, run.Identify("act", r.Entries[1].Message.ToolCalls[0].ID+"/progress"))
	for _, event := range events {
		if custom, ok := event.(*agui.Custom); ok && string(custom.Value) != "null" {
			t.Errorf("value of the custom event = %s, want null", custom.Value)
		}
	}
}

func TestInvalidToolReports(t *testing.T) {
	t.Parallel()
	var after tools.Reporter
	check := func(what string, err error) {
		var refused *tools.ReportError
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a *ReportError", what, err)
		}
	}
	tool := tools.Func("tool", "reports", func(ctx context.Context, _ struct{}) (string, error) {
		r := tools.Report(ctx)
		after = r
		check("nameless activity", r.Activity("", "a", map[string]int{}))
		check("activity without a type", r.Activity("a", "", map[string]int{}))
		check("activity of text", r.Activity("a", "a", "text"))
		check("patch of no activity", r.PatchActivity("a", tools.Set("/a", 1)))
		check("value that has no JSON form", r.Custom("a", func() {}))
		check("nameless event", r.Custom("", 1))
		check("large report", r.Custom("a", strings.Repeat("x", tools.MaxReport)))
		check("long source", r.Raw(strings.Repeat("x", tools.MaxReportName+1), 1))
		check("member of nothing", r.PatchState(tools.Set("/a/b", 1)))
		check("element of no list", r.PatchState(tools.Set("/a", 1), tools.Append("/a", 1)))
		check("no pointer", r.PatchState(tools.Set("a", 1)))
		check("no operation", r.PatchState(tools.Op{Op: "increment", Path: "/a"}, tools.Remove("/a")))
		if err := r.Activity("a", "a", map[string]int{}); err != nil {
			t.Error(err)
		}
		check("patch that leaves no object", r.PatchActivity("a", tools.Op{Op: "replace", Path: "", Value: 1}))
		for i := 1; i < tools.MaxActivities; i++ {
			if err := r.Activity(fmt.Sprint("a", i), "a", map[string]int{}); err != nil {
				t.Error(err)
			}
		}
		check("one activity too many", r.Activity("b", "a", map[string]int{}))
		for range tools.MaxReports - tools.MaxActivities {
			if err := r.Custom("a", 1); err != nil {
				t.Error(err)
			}
		}
		check("one report too many", r.Custom("a", 1))
		if got := string(r.State()); got != "{}" {
			t.Errorf("state after refused operations = %s, want {}", got)
		}
		return "", nil
	})
	fixture := setup(t, callOnce("tool", "{}"), tool)
	events, _ := fixture.run("go")
	if err := after.Custom("a", 1); err == nil {
		t.Error("report after the call is accepted, want an error")
	}
	if got, want := strings.Count(typesOf(events), "CUSTOM"), tools.MaxReports-tools.MaxActivities; got != want {
		t.Errorf("events: got %d, want %d", got, want)
	}
	fixture.wantThreadEqualsClient(events)
}

// TestReportsOfFailedAttemptAreRetracted: the reports of a dead attempt are retracted. The next
// attempt reports them again, with the same IDs.
func TestReportsOfFailedAttemptAreRetracted(t *testing.T) {
	t.Parallel()
	down := errors.New("the way there is down")
	n := 0
	tool := tools.Func("tool", "reports", func(ctx context.Context, _ struct{}) (string, error) {
		n++
		r := tools.Report(ctx)
		if got := string(r.State()); got != "{}" {
			t.Errorf("attempt %d: state = %s, want {}", n, got)
		}
		return "ok", errors.Join(r.Activity("a", "plan", map[string]int{"attempt": n}), r.PatchState(tools.Set("/attempt", n)))
	}, tools.Idempotent())
	fixture := setup(t, callOnce("tool", "{}"), &hangingTool{Tool: tool, err: down})
	events, _ := fixture.run("go")
	r := fixture.wantThreadEqualsClient(events)
	mustEqual(t, "number of attempts", n, 2)
	wantEqual(t, fmt.Sprintf("after %d attempts: state", n), string(r.State), `{"attempt":2}`)
	wantEqual(t, fmt.Sprintf("after %d attempts: content of the activity message", n), string(r.Entries[3].Message.Content.Object()), `{"attempt":2}`)
}

// hangingTool is a tool whose first call does not end.
type hangingTool struct {
	tools.Tool
	err  error
	died bool
}

func (d *hangingTool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	result, err := d.Tool.Call(ctx, call)
	if !d.died && err == nil {
		d.died = true
		return tools.Result{}, d.err
	}
	return result, err
}

func TestResultWithParts(t *testing.T) {
	t.Parallel()
	chart := tools.Func("chart", "draws", func(context.Context, struct{}) (tools.Result, error) {
		return tools.Result{Content: "a chart", Parts: []llm.Part{
			llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "aGVsbG8=", Name: "chart.png"},
			llm.Media{Kind: llm.MediaVideo, URL: "https://example.com/film"},
			llm.Media{Kind: "hologram", URL: "https://example.com"},
			llm.Text{Text: ", and a film"},
		}}, nil
	})
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 2 {
			last := req.Messages[len(req.Messages)-1]
			want := llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "aGVsbG8=", Name: "chart.png"}
			if last.Role != llm.RoleTool || last.Parts[1] != want || !strings.HasPrefix(last.Text(), "a chart, and a film[omitted: 1 part") {
				t.Errorf("message sent: got %+v, want a tool result with the chart and an omitted part", last)
			}
		}
		return callOnce("chart", "{}")(n, req)
	}, chart)
	events, _ := fixture.run("go")
	r := fixture.wantThreadEqualsClient(events)
	parts := r.Entries[2].Message.Content.Parts()
	mustEqual(t, "number of parts", len(parts), 5)
	wantEqual(t, "type of the second part", parts[1].Type, agui.PartImage)
	wantEqual(t, "data of the second part", parts[1].Source.Value, "aGVsbG8=")
	wantEqual(t, "metadata of the second part", string(parts[1].Metadata), `{"filename":"chart.png"}`)
	wantEqual(t, "source of the third part", parts[2].Source.Type, agui.SourceURL)
}

// TestProviderActivities: activities of a provider are shown like a tool's reports:
// at the position where they began, retracted with a dead attempt, and under the same ID in the
// next one.
func TestProviderActivities(t *testing.T) {
	t.Parallel()
	searching := func(attempt int, hits string) []llm.Chunk {
		return []llm.Chunk{
			llm.ReasoningDelta{Text: "let me search"},
			llm.Activity{Name: "s1", Kind: "web-search", Content: json.RawMessage(fmt.Sprintf(`{"attempt":%d}`, attempt))},
			llm.TextDelta{Text: "I found "},
			llm.ActivityPatch{Name: "s1", Patch: json.RawMessage(`[{"op":"add","path":"/hits","value":` + hits + `}]`)},
			llm.Activity{Name: "s2", Kind: "web-search", Content: json.RawMessage(`{}`)},
			llm.TextDelta{Text: "it."},
		}
	}
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return searching(1, "1"), &llm.Error{Code: llm.CodeUnavailable}
		}
		for _, m := range req.Messages {
			if strings.Contains(fmt.Sprint(m), "web-search") {
				t.Errorf("message sent to the model: got the activity %+v, want none", m)
			}
		}
		return append(searching(2, "2"), llm.Finish{Reason: llm.FinishStop}), nil
	})
	events, _ := fixture.run("go")
	r := fixture.wantThreadEqualsClient(events)
	mustEqual(t, "number of entries", len(r.Entries), 5)
	for i, want := range map[int]string{2: `{"attempt":2,"hits":2}`, 4: `{}`} {
		if got := r.Entries[i].Message; got.Role != agui.RoleActivity || string(got.Content.Object()) != want {
			t.Errorf("message %d: got %s, want an activity %s", i, asJSON(t, got), want)
		}
	}
}

func TestInvalidProviderActivity(t *testing.T) {
	t.Parallel()
	for name, chunk := range map[string]llm.Chunk{
		"content that is no object": llm.Activity{Name: "a", Kind: "a", Content: json.RawMessage(`1`)},
		"content that is no JSON":   llm.Activity{Name: "a", Kind: "a", Content: json.RawMessage(`{`)},
		"no type":                   llm.Activity{Name: "a", Content: json.RawMessage(`{}`)},
		"a patch of nothing":        llm.ActivityPatch{Name: "a", Patch: json.RawMessage(`[]`)},
	} {
		fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return []llm.Chunk{chunk, llm.Finish{Reason: llm.FinishStop}}, nil
			}
			return textAnswer("done")
		})
		events, _ := fixture.run("go")
		r := fixture.wantThreadEqualsClient(events)
		wantEqual(t, name+": number of model calls", fixture.calls.Load(), 2)
		wantEqual(t, name+": number of entries", len(r.Entries), 2)
	}
}
