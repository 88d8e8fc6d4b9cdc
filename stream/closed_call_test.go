package stream_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// halfCall returns the events of a call, of which the model has written a part. A member of the
// state follows the arguments.
func halfCall(message string) []agui.Event {
	return []agui.Event{
		&agui.ToolCallStart{ToolCallID: message + "c", ToolCallName: "write", ParentMessageID: message},
		&agui.ToolCallArgs{ToolCallID: message + "c", Delta: `{"text":"half`},
		&agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/text","value":"half"}]`)},
	}
}

// unansweredCall returns the result of a model call with the call of halfCall.
func unansweredCall(message string) *stream.Result {
	result := resultWith(assistantMessage(message, "", agui.ToolCall{ID: message + "c", Name: "write", Arguments: `{"text":"half`}))
	result.Predicted = map[string][]stream.Predicted{message + "c": {{Path: "/text", Digest: stream.PredictedDigest(json.RawMessage(`"half"`))}}}
	return result
}

// callUnanswered writes a finished model call with a call that has no result.
func (f *projectionFixture) callUnanswered(message string) {
	f.t.Helper()
	f.after = f.writeFinishedAttempt(f.place("1/model"), unansweredCall(message), append(halfCall(message), &agui.ToolCallEnd{ToolCallID: message + "c"})...)
}

// TestEndOfRunClosesCalls: a run that is cancelled or fails leaves no call without a result, and no
// prediction in the state. A live reader receives the result before the last event, and then has
// what later readers get.
func TestEndOfRunClosesCalls(t *testing.T) {
	t.Parallel()
	cancelled := &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}
	failed := &agui.RunError{Code: "limit_turns", Message: "no"}
	const noResult = ""
	for name, tt := range map[string]struct {
		write      func(f *projectionFixture)
		end        agui.Event
		wantResult string
		wantState  string
	}{
		"cancelled after the model call": {func(f *projectionFixture) { f.callUnanswered("m1") }, cancelled, snapshot.CallCancelled, `{"old":true}`},
		"failed after the model call":    {func(f *projectionFixture) { f.callUnanswered("m1") }, failed, snapshot.CallCancelled, `{"old":true}`},
		"cancelled in the arguments": {func(f *projectionFixture) {
			f.attempt(f.place("1/model"), halfCall("m1")...)
			f.supersede(f.place("1/model"), true)
		}, cancelled, snapshot.CallCancelled, `{"old":true}`},
		"failed in the arguments": {func(f *projectionFixture) {
			f.attempt(f.place("1/model"), halfCall("m1")...)
			f.supersede(f.place("1/model"), false)
		}, failed, noResult, `{"old":true}`},
		"terminated in the arguments": {func(f *projectionFixture) {
			f.attempt(f.place("1/model"), halfCall("m1")...)
		}, failed, noResult, `{"old":true}`},
		"failed after the call had begun": {func(f *projectionFixture) {
			f.callUnanswered("m1")
			f.attempt(f.lane(stream.LaneMain.Tool(0), "1/tools/0"))
			f.supersede(f.lane(stream.LaneMain.Tool(0), "finish"), false)
		}, failed, snapshot.CallUnfinished, `{"old":true}`},
		"cancelled after another change of the state": {func(f *projectionFixture) {
			f.callUnanswered("m1")
			f.finish(f.attempt(f.lane(stream.LaneMain.Tool(0), "1/tools/0")), resultWith(), &agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/text","value":"mine"}]`)})
		}, cancelled, snapshot.CallCancelled, `{"old":true,"text":"mine"}`},
		"cancelled with a result": {func(f *projectionFixture) {
			f.callUnanswered("m1")
			e, m := toolResult("r1", "m1c", "done")
			f.finish(f.attempt(f.lane(stream.LaneMain.Tool(0), "1/tools/0")), resultWith(m), e)
		}, cancelled, "done", `{"old":true,"text":"half"}`},
		"waiting for the client": {func(f *projectionFixture) { f.callUnanswered("m1") },
			&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"m1c"}}}, noResult, `{"old":true,"text":"half"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			f := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
			f.begin(run, user, `{"old":true}`)
			follower := streamtest.Follow(t, l)
			live := &pollingReader{view: viewer(follower).Run(run, view.Options{})}
			defer live.view.Close()
			f.step = func() { live.poll(ctx, f.last()) }
			tt.write(f)
			f.seal(tt.end)

			log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			messages := log.Messages()
			i := slices.IndexFunc(messages, func(m agui.Message) bool { return m.ToolCallID == "m1c" })
			got := noResult
			if i >= 0 {
				got = messages[i].Content.Text()
			}
			wantEqual(t, "result of the call", got, tt.wantResult)
			wantEqual(t, "state", canonicalJSON(t, log.State), canonicalJSON(t, json.RawMessage(tt.wantState)))
			wantScreenOfLog(t, "live reader", applyFrames(t, "live reader", []agui.Message{user}, live.frames, true), log, live.frames)
			joined := readRest(t, ctx, viewer(follower).Run(run, view.Options{}))
			wantScreenOfLog(t, "later reader", applyFrames(t, "later reader", []agui.Message{user}, joined, true), log, joined)
			if tt.wantResult == snapshot.CallCancelled && !strings.Contains(formatFrames(live.frames), `"TOOL_CALL_RESULT"`) {
				t.Errorf("live reader: got no TOOL_CALL_RESULT\n%s", formatFrames(live.frames))
			}
		})
	}
}
