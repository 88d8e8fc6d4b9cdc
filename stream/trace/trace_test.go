package trace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/trace"
)

var run = stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "t"}, ID: "r"}

// tracedLog is a log with one run, to which a test writes what activities would write.
type tracedLog struct {
	*testing.T

	log   *stream.Log
	store *snapshot.Store
	run   stream.Run
	main  uint64 // the last record of the main lane
}

// setup returns a log on which the run has begun.
func setup(t *testing.T) *tracedLog {
	t.Helper()
	l := &tracedLog{T: t, log: streamtest.Open(t), run: run}
	l.store = snapshot.NewStore(l.log)
	l.openRun(run)
	return l
}

// openRun begins a run, or a segment.
func (l *tracedLog) openRun(r stream.Run) {
	l.Helper()
	input, err := l.log.ProposeInput(l.Context(), r, [32]byte{1}, &stream.Input{Input: agui.RunAgentInput{ThreadID: "t", RunID: r.ID}})
	l.must(err)
	l.run, l.main = r, 0
	place := l.place(stream.LaneMain, "1/model")
	l.main, err = l.store.OpenRun(l.Context(), place, stream.Opening{RunID: r.ID, Agent: "boss", Revision: "rev", Input: input.Seq, Execution: "e"}, &agui.StepStarted{StepName: "model"})
	l.must(err)
}

func (l *tracedLog) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *tracedLog) place(lane stream.Lane, step string) stream.Place {
	p := stream.Place{Run: l.run, Lane: lane, Step: step, Execution: "e"}
	if lane == stream.LaneMain {
		p.After = l.main
	}
	return p
}

// open opens a step on the main lane.
func (l *tracedLog) open(step string, events ...agui.Event) {
	l.Helper()
	seq, err := l.log.OpenStep(l.Context(), l.place(stream.LaneMain, step), nil, events...)
	l.must(err)
	l.main = seq
}

// begin begins an attempt.
func (l *tracedLog) begin(lane stream.Lane, step string) *stream.Attempt {
	l.Helper()
	a, _, err := l.log.Begin(l.Context(), l.place(lane, step))
	l.must(err)
	l.Cleanup(a.Close)
	return a
}

// finish ends an attempt with an answer.
func (l *tracedLog) finish(a *stream.Attempt, lane stream.Lane, result stream.Result, answer string, events ...agui.Event) {
	l.Helper()
	result.Answer = json.RawMessage(answer)
	seq, err := a.Finish(l.Context(), &result, events...)
	l.must(err)
	if lane == stream.LaneMain {
		l.main = seq
	}
}

// say emits events, and waits for the log.
func (l *tracedLog) say(a *stream.Attempt, events ...agui.Event) {
	l.Helper()
	l.must(a.Emit(l.Context(), events...))
	l.must(a.Flush(l.Context()))
}

// seal ends the run.
func (l *tracedLog) seal(event agui.Event) {
	l.Helper()
	_, _, err := l.log.Seal(l.Context(), l.place(stream.LaneMain, "finish"), event)
	l.must(err)
}

// read returns the trace as of now.
func (l *tracedLog) read() *trace.Trace {
	l.Helper()
	fold, err := trace.Read(l.Context(), l.store, run)
	l.must(err)
	return fold.Trace()
}

// callsOf is the result of a model call with tool calls of these names: c0, c1, …
func callsOf(names ...string) stream.Result {
	m := agui.Message{ID: "m", Role: agui.RoleAssistant}
	for i, name := range names {
		m.ToolCalls = append(m.ToolCalls, agui.ToolCall{ID: fmt.Sprint("c", i), Name: name, Arguments: "{}"})
	}
	return stream.Result{Messages: []agui.Message{m}}
}

// toolResult is the result of a tool call.
func toolResult(call, failure string) stream.Result {
	return stream.Result{Messages: []agui.Message{{ID: "res-" + call, Role: agui.RoleTool, ToolCallID: call, Content: agui.TextContent("done"), Error: failure}}}
}

// tree returns a trace as text, without times, and checks the order of times.
func tree(t *testing.T, all *trace.Trace) string {
	t.Helper()
	var b strings.Builder
	depth, byID := map[string]int{}, map[string]trace.Span{}
	for _, s := range all.Spans {
		parent, known := byID[s.ParentID]
		if s.ParentID != "" {
			if !known {
				t.Errorf("parent of span %s = %q, want one that precedes it", s.ID, s.ParentID)
			}
			depth[s.ID] = depth[s.ParentID] + 1
			if s.StartedAt.Before(parent.StartedAt) {
				t.Errorf("start of %s = %v, want one after that of its parent, %v", s.Name, s.StartedAt, parent.StartedAt)
			}
		}
		if s.EndedAt != nil && s.EndedAt.Before(s.StartedAt) {
			t.Errorf("end of %s = %v, want one after its start, %v", s.Name, s.EndedAt, s.StartedAt)
		}
		byID[s.ID] = s
		fmt.Fprintf(&b, "%s%s %s: %s%s\n", strings.Repeat("  ", depth[s.ID]), s.Kind, s.Name, s.Status, errorOf(s.Error))
		last := s.StartedAt
		for _, a := range s.Attempts {
			fmt.Fprintf(&b, "%s* %d %s%s", strings.Repeat("  ", depth[s.ID]+1), a.Number, a.Status, errorOf(a.Error))
			if w := a.Withdrawn; w != nil {
				fmt.Fprintf(&b, " withdrawn %q %q %v", w.Text, w.Reasoning, w.ToolCalls)
			}
			b.WriteString("\n")
			if a.StartedAt.Before(last) || a.EndedAt != nil && a.EndedAt.Before(a.StartedAt) {
				t.Errorf("attempt %d of %s: from %v to %v, want it after %v", a.Number, s.Name, a.StartedAt, a.EndedAt, last)
			}
			last = a.StartedAt
		}
		if s.Retry != nil {
			fmt.Fprintf(&b, "%sretry %d%s\n", strings.Repeat("  ", depth[s.ID]+1), s.Retry.Attempt, errorOf(s.Retry.Error))
		}
	}
	return b.String()
}

func errorOf(e *trace.Error) string {
	if e == nil {
		return ""
	}
	return " (" + e.Code + ")"
}

func wantTree(t *testing.T, all *trace.Trace, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), tree(t, all)); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

// TestTraceOfBeginRecords: a begin record makes the same spans and attempts as an open record and an
// attempt record.
func TestTraceOfBeginRecords(t *testing.T) {
	t.Parallel()
	writeDead := func(l *tracedLog, dead *stream.Attempt) string {
		l.say(dead, &agui.TextMessageStart{MessageID: "m"}, &agui.TextMessageContent{MessageID: "m", Delta: "Half a "})
		dead.Close()
		active := tree(t, l.read())
		l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, callsOf(), `{"messageId":"m"}`)
		return active + tree(t, l.read())
	}
	two := setup(t)
	want := writeDead(two, two.begin(stream.LaneMain, "1/model"))
	one := &tracedLog{T: t, log: streamtest.Open(t), run: run}
	one.store = snapshot.NewStore(one.log)
	input, err := one.log.ProposeInput(t.Context(), run, [32]byte{1}, &stream.Input{Input: agui.RunAgentInput{ThreadID: "t", RunID: run.ID}})
	one.must(err)
	opening := stream.Opening{Agent: "boss", Revision: "rev", Input: input.Seq}
	dead, _, err := one.store.BeginRun(t.Context(), one.place(stream.LaneMain, "1/model"), opening, &agui.StepStarted{StepName: "model"})
	one.must(err)
	if diff := cmp.Diff(want, writeDead(one, dead)); diff != "" {
		t.Errorf("trace (-two records +one):\n%s", diff)
	}
}

// TestTraceHasEveryAttempt: a model call whose worker died, and a tool that failed twice, have all
// their attempts, with what the first one had streamed.
func TestTraceHasEveryAttempt(t *testing.T) {
	t.Parallel()
	l := setup(t)
	dead := l.begin(stream.LaneMain, "1/model")
	l.must(dead.Note(json.RawMessage(`{"model":"test/m","usage":{"input":3}}`)))
	l.say(dead, &agui.TextMessageStart{MessageID: "m"}, &agui.TextMessageContent{MessageID: "m", Delta: "Half a "},
		&agui.TextMessageContent{MessageID: "m", Delta: "thought"}, &agui.ToolCallStart{ToolCallID: "x", ToolCallName: "search"}, &agui.ToolCallArgs{ToolCallID: "x", Delta: `{"q":`})
	wantTree(t, l.read(), `
run boss: running
  turn turn 1: running
    model test/m: running
`)
	model := l.begin(stream.LaneMain, "1/model")
	wantTree(t, l.read(), `
run boss: running
  turn turn 1: running
    model test/m: running
      * 1 failed (worker_lost) withdrawn "Half a thought" "" [{search {"q":}]
      * 2 running
      retry 2 (worker_lost)
`)
	l.finish(model, stream.LaneMain, callsOf("search", "pay"), `{"outcome":"success","messageId":"m","usage":{"provider":"test","model":"m","input":4,"output":2,"cost":1500}}`)
	l.open("1/tools", &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	for range 2 {
		a := l.begin(stream.LaneMain.Tool(0), "1/tools/0")
		l.must(a.ReportFailure(t.Context(), stream.Failure{Code: "tool_unavailable", Message: "the server is away", Pause: time.Minute}))
		a.Close()
	}
	retrying := l.read().Spans[3]
	if retrying.Retry == nil || retrying.Retry.Attempt != 3 || retrying.Retry.NextAt == nil || !retrying.Retry.Since.Equal(*retrying.Attempts[0].EndedAt) {
		t.Errorf("retry = %+v, want attempt 3 at a time, since the end of the first attempt", retrying.Retry)
	}
	l.finish(l.begin(stream.LaneMain.Tool(0), "1/tools/0"), stream.LaneMain.Tool(0), toolResult("c0", ""), `{"outcome":"success"}`)
	l.finish(l.begin(stream.LaneMain.Tool(1), "1/tools/1"), stream.LaneMain.Tool(1), toolResult("c1", "no money"), `{"outcome":"error"}`)
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r", Usage: []agui.TokenUsage{{Model: "m"}}, BaseEvent: agui.BaseEvent{Metadata: agui.Metadata{"perdure.cost": json.RawMessage(`{"amount":0.0015,"currency":"EUR"}`)}}})
	all := l.read()
	wantTree(t, all, `
run boss: finished
  turn turn 1: finished
    model test/m: finished
      * 1 failed (worker_lost) withdrawn "Half a thought" "" [{search {"q":}]
      * 2 finished
    tool search: finished
      * 1 failed (tool_unavailable)
      * 2 failed (tool_unavailable)
      * 3 finished
    tool pay: failed (tool_failed)
      * 1 failed (tool_failed)
`)
	model1 := all.Spans[2]
	if got := *model1.Attempts[0].Usage.InputTokens; got != 3 {
		t.Errorf("input tokens of the attempt that died = %d, want 3", got)
	}
	if model1.Cost == nil || model1.Cost.Amount != 1500 || all.Cost == nil || all.Cost.Currency != "EUR" {
		t.Errorf("costs = %+v of the call, %+v of the run; want 0.0015, and the currency of the run", model1.Cost, all.Cost)
	}
	if all.Outcome != "success" || all.Agent != "boss" || all.EndedAt == nil {
		t.Errorf("run = %+v, want a success of boss with an end", all.Run)
	}
}

// TestAttemptsHaveTheirModels: each attempt has the model that it has called, and the span that of the
// last one, whether or not the log has the note of the call.
func TestAttemptsHaveTheirModels(t *testing.T) {
	t.Parallel()
	for _, hasNote := range []bool{true, false} {
		l := setup(t)
		failed := l.begin(stream.LaneMain, "1/model")
		l.must(failed.Note(json.RawMessage(`{"model":"test/m","usage":{"input":3}}`)))
		l.must(failed.ReportFailure(t.Context(), stream.Failure{Code: "unavailable", Model: "test/m"}))
		failed.Close()
		refused := l.begin(stream.LaneMain, "1/model")
		l.must(refused.ReportFailure(t.Context(), stream.Failure{Code: "not_found", Model: "none/m", Unusable: true}))
		refused.Close()
		last := l.begin(stream.LaneMain, "1/model")
		if hasNote {
			l.must(last.Note(json.RawMessage(`{"model":"other/n","usage":{"input":3}}`)))
			l.must(last.Flush(t.Context()))
		}
		l.finish(last, stream.LaneMain, stream.Result{}, `{"outcome":"success","messageId":"m","usage":{"provider":"other","model":"n","input":4,"output":2}}`)
		model := l.read().Spans[2]
		got := []string{model.Name, model.Model}
		for _, a := range model.Attempts {
			got = append(got, a.Model)
		}
		if want := []string{"other/n", "other/n", "test/m", "none/m", "other/n"}; !slices.Equal(got, want) {
			t.Errorf("with a note %t: name, model, and models of the attempts = %q, want %q", hasNote, got, want)
		}
	}
}

// TestAttemptWaitsForItsLimit: the trace has the wait of a call for the limit of its provider, also if the
// call is the only attempt and has not failed.
func TestAttemptWaitsForItsLimit(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		l := setup(t)
		a := l.begin(stream.LaneMain, "1/model")
		l.must(a.Note(json.RawMessage(`{"model":"test/m","usage":{},"free":true,"waits":true}`)))
		l.must(a.Flush(t.Context()))
		waiting := l.read().Spans[2].Attempts
		if len(waiting) != 1 || waiting[0].Wait == nil || waiting[0].Wait.EndedAt != nil || waiting[0].Model != "test/m" {
			t.Fatalf("attempts of a call that waits = %+v, want one that waits", waiting)
		}
		if fails {
			l.must(a.ReportFailure(t.Context(), stream.Failure{Code: "provider_busy", Model: "test/m"}))
		} else {
			l.must(a.Note(json.RawMessage(`{"model":"test/m","usage":{"input":3}}`)))
			l.must(a.Flush(t.Context()))
		}
		wait := l.read().Spans[2].Attempts[0].Wait
		if wait == nil || wait.EndedAt == nil || wait.EndedAt.Before(wait.StartedAt) {
			t.Errorf("wait after its end, fails %t = %+v, want its times", fails, wait)
		}
		a.Close()
	}
}

// TestAwaits: the interrupt of a wait tells what it waits for, and until when.
func TestAwaits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, callsOf("sleep"), `{"outcome":"success"}`)
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{
		{
			ID: "int_1", Reason: "perdure:event", ToolCallID: "c0", ExpiresAt: "2026-11-27T12:00:00Z",
			Metadata: map[string]json.RawMessage{stream.MetadataWait: json.RawMessage(`{"kind":"event","event":"paid","match":{"id":1}}`)},
		},
		{ID: "int_2", Reason: "tool_call", ToolCallID: "c1"},
	}}})
	var got []string
	for _, s := range l.read().Spans {
		if s.InterruptID != "" {
			encoded, err := json.Marshal(s.Awaits)
			l.must(err)
			got = append(got, s.InterruptID+" "+string(encoded))
		}
	}
	if want := []string{`int_1 {"kind":"event","event":"paid","match":{"id":1},"until":"2026-11-27T12:00:00Z"}`, "int_2 null"}; !slices.Equal(got, want) {
		t.Errorf("interrupts = %q, want %q", got, want)
	}
}

// TestDecidedCallsFail: a call that fails because of the decision about it has the code of its step.
func TestDecidedCallsFail(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, callsOf("event", "event", "pay", "pay"), `{"outcome":"success"}`)
	for i, decision := range []string{"expire", "reject", "expire", "approve"} {
		result := toolResult(fmt.Sprint("c", i), "no")
		result.Decided = &stream.Decided{CallID: fmt.Sprint("c", i), Kind: decision}
		lane := stream.LaneMain.Tool(i)
		l.finish(l.begin(lane, fmt.Sprint("1/tools/", i)), lane, result, `{"outcome":"error"}`)
	}
	var got []string
	for _, s := range l.read().Spans {
		if s.Kind == trace.KindTool {
			got = append(got, s.Name+" "+s.Error.Code)
		}
	}
	if want := []string{"event timeout", "event rejected", "pay rejected", "pay tool_failed"}; !slices.Equal(got, want) {
		t.Errorf("calls = %q, want %q", got, want)
	}
}

// TestInterruptsAreWaits: an interrupt waits from its announcement to its decision, and the next
// segment of the run has the call that the decision allows.
func TestInterruptsAreWaits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, callsOf("pay"), `{"outcome":"success"}`)
	interrupt := agui.Interrupt{ID: "int_1", Reason: "tool_call", ToolCallID: "c0"}
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{interrupt}}})
	wantTree(t, l.read(), `
run boss: waiting
  turn turn 1: waiting
    model model: finished
    interrupt pay: waiting
`)
	entry := json.RawMessage(`{"event":{"type":"decided","at":"2026-11-26T12:00:00Z","approval":{"id":"int_1","decisions":[{"decision":"approve"}]}}}`)
	l.must(l.log.AppendAudit(t.Context(), run, "evt_1", entry))
	decided := l.read()
	if s := decided.Spans[3]; s.Decision != "approve" || s.EndedAt == nil || decided.Status != trace.StatusFinished {
		t.Errorf("interrupt after its decision = %+v in a run that is %s; want approve, an end, and finished", s, decided.Status)
	}
	l.openRun(run.Segment(2))
	result := toolResult("c0", "")
	result.Decided = &stream.Decided{CallID: "c0", Kind: "approve"}
	l.finish(l.begin(stream.LaneMain.Tool(0), "1/tools/0"), stream.LaneMain.Tool(0), result, `{"outcome":"success"}`)
	l.seal(&agui.RunError{Code: "limit_turns", Message: "too many turns"})
	all := l.read()
	if all.Error == nil || all.Error.Hint == "" || all.RunID != "r" {
		t.Errorf("run = %+v, want the error limit_turns with a hint", all.Run)
	}
	if got := tree(t, all); !strings.Contains(got, "tool pay: finished") || strings.Contains(got, "waiting") {
		t.Errorf("trace of both segments = %s, want the call of pay and nothing that waits", got)
	}
}

// TestStepsAndCompensation: the steps of a pipeline nest, a branch is within its step, and what undoes
// finished steps is within the compensation.
func TestStepsAndCompensation(t *testing.T) {
	t.Parallel()
	l := setup(t)
	advance := func(step, answer string, events ...agui.Event) {
		t.Helper()
		l.finish(l.begin(stream.LaneMain, step), stream.LaneMain, stream.Result{}, answer, events...)
	}
	advance("advance/1", `{"active":{}}`, &agui.StepStarted{StepName: "book"}, &agui.StepStarted{StepName: "hotel"})
	l.finish(l.begin(stream.LaneMain.Tool(0), "hotel/1/tools/0"), stream.LaneMain.Tool(0), toolResult("c0", ""), `{"outcome":"success"}`)
	advance("advance/2", `{"branches":{}}`, &agui.StepFinished{StepName: "hotel"}, &agui.StepStarted{StepName: "all"})
	branch := l.place(stream.LaneMain.Subagent(0), "b/advance/1")
	branch.Since = l.main
	_, err := l.log.OpenStep(t.Context(), branch, nil, &agui.SubagentStarted{SubagentRunID: "sub_b", Name: "all/0"})
	l.must(err)
	l.finish(l.begin(branch.Lane, branch.Step), branch.Lane, stream.Result{}, `{}`, &agui.SubagentError{SubagentRunID: "sub_b", Code: "rejected", Message: "no"})
	advance("advance/3", `{"active":{},"treePosition":{"undoing":{"code":"rejected","message":"no"}}}`,
		&agui.StepFinished{StepName: "all"}, &agui.StepFinished{StepName: "book"}, &agui.StepStarted{StepName: "hotel/compensate"})
	advance("advance/4", `{"failed":{"code":"rejected","message":"no"},"treePosition":{"undoing":{"code":"rejected","message":"no"}}}`, &agui.StepFinished{StepName: "hotel/compensate"})
	l.seal(&agui.RunError{Code: "rejected", Message: "no"})
	wantTree(t, withoutTurns(l.read()), `
run boss: failed (rejected)
  step book: failed (rejected)
    step hotel: finished
      tool tool: finished
    step all: failed (rejected)
      branch all/0: failed (rejected)
  compensation compensation: finished (rejected)
    step hotel/compensate: finished
`)
}

// TestFailureBeforeCalls: a step that fails before it calls anything, such as in an expression, is
// the one that has failed. The step before it, which ends with the same record, has finished.
func TestFailureBeforeCalls(t *testing.T) {
	t.Parallel()
	l := setup(t)
	advance := func(step, answer string, events ...agui.Event) {
		t.Helper()
		l.finish(l.begin(stream.LaneMain, step), stream.LaneMain, stream.Result{}, answer, events...)
	}
	advance("advance/1", `{"active":{}}`, &agui.StepStarted{StepName: "hotel"})
	l.finish(l.begin(stream.LaneMain.Tool(0), "hotel/1/tools/0"), stream.LaneMain.Tool(0), toolResult("c0", ""), `{"outcome":"success"}`)
	advance("advance/2", `{"active":{},"treePosition":{"undoing":{"code":"invalid_expression","message":"no"}}}`,
		&agui.StepFinished{StepName: "hotel"}, &agui.StepStarted{StepName: "trip"}, &agui.StepStarted{StepName: "flight"},
		&agui.StepFinished{StepName: "flight"}, &agui.StepFinished{StepName: "trip"}, &agui.StepStarted{StepName: "hotel/compensate"})
	advance("advance/3", `{"failed":{"code":"invalid_expression","message":"no"},"treePosition":{"undoing":{"code":"invalid_expression","message":"no"}}}`, &agui.StepFinished{StepName: "hotel/compensate"})
	l.seal(&agui.RunError{Code: "invalid_expression", Message: "no"})
	wantTree(t, withoutTurns(l.read()), `
run boss: failed (invalid_expression)
  step hotel: finished
    tool tool: finished
  step trip: failed (invalid_expression)
    step flight: failed (invalid_expression)
  compensation compensation: finished (invalid_expression)
    step hotel/compensate: finished
`)
}

// withoutTurns returns a trace without its turns and model calls: setup has opened one that
// pipelines do not make.
func withoutTurns(all *trace.Trace) *trace.Trace {
	all.Spans = slices.DeleteFunc(all.Spans, func(s trace.Span) bool { return s.Kind == trace.KindTurn || s.Kind == trace.KindModel })
	return all
}

// TestTraceIsBounded: a trace has at most MaxSpans spans, and MaxWithdrawn bytes of an attempt.
func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	l := setup(t)
	dead := l.begin(stream.LaneMain, "1/model")
	for range 20 {
		l.say(dead, &agui.TextMessageContent{MessageID: "m", Delta: strings.Repeat("x", 1<<10)})
	}
	var steps []agui.Event
	for i := range trace.MaxSpans + 10 {
		name := fmt.Sprint("s", i)
		steps = append(steps, &agui.StepStarted{StepName: name}, &agui.StepFinished{StepName: name})
	}
	l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, stream.Result{}, `{"outcome":"success"}`)
	for chunk := range 2 {
		half := len(steps) / 2
		l.finish(l.begin(stream.LaneMain, fmt.Sprint("advance/", chunk)), stream.LaneMain, stream.Result{}, `{"active":{}}`, steps[chunk*half:(chunk+1)*half]...)
	}
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r"})
	all := l.read()
	if len(all.Spans) != trace.MaxSpans || !all.Truncated || all.Status != trace.StatusFinished {
		t.Errorf("trace = %d spans, truncated %t, %s; want %d, true, finished", len(all.Spans), all.Truncated, all.Status, trace.MaxSpans)
	}
	w := all.Spans[2].Attempts[0].Withdrawn
	if w == nil || len(w.Text) != trace.MaxWithdrawn || !w.Truncated {
		t.Errorf("withdrawn text is not that of %d bytes, cut", trace.MaxWithdrawn)
	}
}

// TestChangedSpans: a fold that is read while the run goes on returns each change once, and ends with
// the same trace as a fold at the end.
func TestChangedSpans(t *testing.T) {
	t.Parallel()
	l := setup(t)
	fold, err := trace.Read(t.Context(), l.store, run)
	l.must(err)
	spans := map[string]trace.Span{}
	for _, s := range fold.Trace().Spans {
		spans[s.ID] = s
	}
	l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, callsOf("pay"), `{"outcome":"success","usage":{"input":1}}`)
	l.finish(l.begin(stream.LaneMain.Tool(0), "1/tools/0"), stream.LaneMain.Tool(0), toolResult("c0", ""), `{"outcome":"success"}`)
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r"})
	last, err := l.log.Last(t.Context(), l.log.RunSubject(run)+".>")
	l.must(err)
	for rec, err := range l.log.Records(t.Context(), l.log.RunSubject(run)+".>", fold.Last()+1, last.Seq) {
		l.must(err)
		l.must(fold.Add(t.Context(), rec))
		for _, s := range fold.Changed() {
			spans[s.ID] = s
		}
	}
	if again := fold.Changed(); len(again) > 0 {
		t.Errorf("changes after the last record = %v, want none", again)
	}
	want := l.read()
	for _, s := range want.Spans {
		if diff := cmp.Diff(s, spans[s.ID]); diff != "" {
			t.Errorf("span %s from changes (-want +got):\n%s", s.Name, diff)
		}
	}
	if diff := cmp.Diff(want.Run, fold.Run()); diff != "" || !fold.HasEnded() {
		t.Errorf("run from changes (-want +got):\n%s", diff)
	}
}

// BenchmarkTrace reads the trace of a run with 10,000 events, each in a record of its own.
func BenchmarkTrace(b *testing.B) {
	l, ctx := streamtest.Open(b), context.Background()
	store := snapshot.NewStore(l)
	after, err := store.OpenRun(ctx, stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}, stream.Opening{RunID: "r", Agent: "a", Execution: "e", Continues: "before"})
	if err != nil {
		b.Fatal(err)
	}
	for turn := range 10 {
		a, _, err := l.Begin(ctx, stream.Place{Run: run, Lane: stream.LaneMain, Step: fmt.Sprint(turn+1, "/model"), Execution: "e", After: after})
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			if err := a.Emit(ctx, &agui.TextMessageContent{MessageID: "m", Delta: "word "}); err != nil {
				b.Fatal(err)
			}
			if err := a.Flush(ctx); err != nil {
				b.Fatal(err)
			}
		}
		if after, err = a.Finish(ctx, &stream.Result{Answer: json.RawMessage(`{"outcome":"success"}`)}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		fold, err := trace.Read(ctx, store, run)
		if err != nil {
			b.Fatal(err)
		}
		if n := len(fold.Trace().Spans); n != 21 {
			b.Fatalf("number of spans = %d, want 21", n)
		}
	}
}
