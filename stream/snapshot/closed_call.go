package snapshot

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// A run that is cancelled or fails may leave tool calls without a result: the model was still
// writing them, or nothing has made them. The thread waits for none of them after such an end. So
// the terminal record closes them: each gets a result, which no record contains.

// Results of calls that a run has left without one.
const (
	// CallCancelled: the call was not made.
	CallCancelled = "The call was cancelled."
	// CallUnfinished: a call of the run had begun, and its result is not in the log.
	CallUnfinished = "The run ended before the call had a result. Whether it took effect is unknown."
)

// ClosesCalls reports whether a run that ended with an event was cancelled or has failed, so that
// its end closes calls.
func ClosesCalls(last agui.Event) bool {
	outcome, _ := runOutcome(last)
	return outcome == string(agui.OutcomeCancelled) || outcome == OutcomeError
}

// closeCalls gives each call of an agent that has no result one, and restores the members of the
// state that its arguments have changed in advance. The calls may be of an earlier run, whose
// interrupts this run has resolved. Calls that a client sent in its list of messages stay as they
// are.
func (f *folder) closeCalls(rec *stream.Record) {
	answered := map[string]bool{}
	for _, e := range f.snap.Entries {
		if e.Message.Role == agui.RoleTool {
			answered[e.Message.ToolCallID] = true
		}
	}
	for _, e := range f.snap.Entries { // insert makes another list
		for _, call := range e.Message.ToolCalls {
			if e.Sent == "" && !answered[call.ID] {
				f.restorePredicted(e, call.ID)
				f.insert(f.closingResult(rec, e, call))
			}
		}
	}
}

// closingResult returns the result with which a record closes a call of an entry. Its readers and
// its ID are those that a result of the tool would have.
func (f *folder) closingResult(rec *stream.Record, e Entry, call agui.ToolCall) Entry {
	text := CallCancelled
	if len(f.snap.Begun) > 0 {
		text = CallUnfinished
	}
	m := agui.Message{
		ID: stream.Run{Thread: f.thread, ID: f.snap.RunID}.Identify("res", call.ID), Role: agui.RoleTool, ToolCallID: call.ID,
		Content: agui.TextContent(text), Error: text, SubagentRunID: e.Message.SubagentRunID,
	}
	return Entry{Message: m, Scope: e.Scope, Visibility: e.Visibility, ShownCalls: shownCalls(m, e.ShownCalls), Since: rec.Seq}
}

// restorePredicted makes restorePatch's change of the state for a call of an entry.
func (f *folder) restorePredicted(e Entry, callID string) {
	patch := restorePatch(e.Predicted[callID], f.snap.Journal.Committed)
	if patch == nil {
		return
	}
	if restored, err := agui.Patch(f.snap.Journal.Committed, patch); err == nil {
		f.snap.Journal.Committed, f.snap.Restored = restored, true
	}
}

// noteToolAttempt notes whether a call has begun whose result is not in the log: an attempt begins
// it, and a done record ends it. A superseded attempt may have called the tool.
func (f *folder) noteToolAttempt(rec *stream.Record) {
	if rec.Lane.IsAgentLane() {
		return
	}
	others := slices.DeleteFunc(slices.Clone(f.snap.Begun), func(l stream.Lane) bool { return l == rec.Lane })
	if rec.Kind == stream.KindAttempt {
		others = append(others, rec.Lane)
	}
	f.snap.Begun = others
}

// ClosingResults returns the results with which the end of the last run has closed calls, without
// hidden ones. s must be the snapshot at the run's terminal record.
func (s *Snapshot) ClosingResults() []agui.Message {
	var results []agui.Message
	if !s.Sealed {
		return nil
	}
	for _, e := range s.Entries {
		if e.Since == s.Seq && e.Sent == "" && e.Message.Role == agui.RoleTool && !e.Hidden() {
			results = append(results, e.Message)
		}
	}
	return results
}
