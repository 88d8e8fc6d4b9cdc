package snapshot

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// A run that is cancelled or fails may leave tool calls without a result: the model was still
// writing them, or nothing has made them. The thread waits for none of them after such an end. So
// the terminal record closes them: each gets a result, which no record contains. A subagent that
// ends before its run has closed its calls in the record of its end.

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

// openCall is a tool call of an agent that has no result.
type openCall struct {
	Entry // with the call

	id string
}

// openCalls returns the calls of agents without results, in their order. Calls that a client sent
// in its list of messages do not count.
func (s *Snapshot) openCalls() []openCall {
	answered := map[string]bool{}
	for _, e := range s.Entries {
		if e.Message.Role == agui.RoleTool {
			answered[e.Message.ToolCallID] = true
		}
	}
	var open []openCall
	for _, e := range s.Entries {
		for _, call := range e.Message.ToolCalls {
			if e.Sent == "" && !answered[call.ID] {
				open = append(open, openCall{e, call.ID})
			}
		}
	}
	return open
}

// closingResult returns the result of the call in a run. Its ID is the one that a result of the
// tool would have. begun reports whether the tool may have been called.
func (c openCall) closingResult(run stream.Run, begun bool) agui.Message {
	text := CallCancelled
	if begun {
		text = CallUnfinished
	}
	m := agui.Message{
		ID: run.Identify("res", c.id), Role: agui.RoleTool, ToolCallID: c.id,
		Content: agui.TextContent(text), SubagentRunID: c.Message.SubagentRunID,
	}
	stream.SetFailed(&m, text)
	return m
}

// closeCalls gives each call of an agent that has no result one, and restores the members of the
// state that its arguments have changed in advance. The calls may be of an earlier run, whose
// interrupts this run has resolved. The readers of a result are those of its call.
func (f *folder) closeCalls(rec *stream.Record) {
	for _, c := range f.snap.openCalls() {
		f.restorePredicted(c.Entry, c.id)
		m := c.closingResult(stream.Run{Thread: f.thread, ID: f.snap.RunID}, len(f.snap.Begun) > 0)
		f.insert(Entry{Message: m, Scope: c.Scope, Visibility: c.Visibility, ShownCalls: shownCalls(m, c.ShownCalls), Since: rec.Seq})
	}
}

// SubagentResults returns the results that close the calls of a subagent, which has ended in a run
// without them. lane is the subagent's.
func (s *Snapshot) SubagentResults(run stream.Run, subagentRunID string, lane stream.Lane) []agui.Message {
	begun := slices.ContainsFunc(s.Begun, func(l stream.Lane) bool { return strings.HasPrefix(string(l), string(lane)+"t") })
	var results []agui.Message
	for _, c := range s.openCalls() {
		if c.Message.SubagentRunID == subagentRunID {
			results = append(results, c.closingResult(run, begun))
		}
	}
	return results
}

// restorePredicted makes restorePatch's change of the state for a call of an entry.
func (f *folder) restorePredicted(e Entry, callID string) {
	patch := restorePatch(e.Predicted[callID], f.snap.Journal.Committed)
	if patch == nil {
		return
	}
	if restored, err := agui.Patch(f.snap.Journal.Committed, patch); err == nil {
		j := &f.snap.Journal
		// What is restored may be a client's, so agents have not written it.
		j.ByAgents = afterInput(j.ByAgents, j.Committed, restored)
		j.Committed, f.snap.Restored = restored, true
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
