package agui

import (
	"fmt"
	"slices"
)

// Guard checks the events of a producer before they are sent. It checks the order of events with a
// Verifier, and additional rules that clients do not enforce. The zero value is ready for a stream
// from its beginning. It is not safe for concurrent use.
//
// As with a Verifier, a rejected event does not change the Guard.
type Guard struct {
	verifier Verifier
	run      *RunStarted // nil before the first run, and in a resumed stream
	// calls are the calls that this run has started, in order. answered are the calls with a
	// result.
	calls    []string
	answered map[string]bool
	shown    []string // calls without a result in the last snapshot of this run
}

// ResumedGuard returns a Guard for a stream that starts inside a run, after a cursor. An item that
// such a stream continues or closes without opening it was opened before the cursor.
func ResumedGuard() *Guard { return &Guard{verifier: *ResumedVerifier()} }

// Check checks the next event. The error is an *OrderError. Check does not repeat the checks of
// Encode. It rejects an event with members that the protocol does not define. It does not change the
// event.
func (g *Guard) Check(e Event) error {
	t := e.EventType()
	if foreign := undefined(e); len(foreign) > 0 {
		return &OrderError{RuleUndefined, t, "", foreign[0].Pointer + ": " + foreign[0].Detail}
	}
	switch e := e.(type) {
	case *RunStarted:
		if concern := versionConcern(e.ProtocolVersion); concern != "" {
			return &OrderError{RuleVersion, t, "", concern}
		}
	case *RunFinished:
		if err := g.checkFinish(e); err != nil {
			return err
		}
	}
	if err := g.verifier.Check(e); err != nil {
		return err
	}
	g.note(e)
	return nil
}

// Open returns the open items; see Verifier.Open.
func (g *Guard) Open() []OpenItem { return g.verifier.Open() }

// End returns an error if the stream must not end here: every started run must have ended.
func (g *Guard) End() error {
	if g.verifier.phase == phaseFinished || g.verifier.phase == phaseFailed {
		return nil
	}
	return &OrderError{Rule: RuleTruncated, Detail: "the stream ends without RUN_FINISHED or RUN_ERROR"}
}

// note records an accepted event.
func (g *Guard) note(e Event) {
	switch e := e.(type) {
	case *RunStarted:
		g.run, g.calls, g.answered, g.shown = e, nil, make(map[string]bool), nil
	case *MessagesSnapshot:
		g.shown = unanswered(e.Messages)
	case *ToolCallStart:
		g.call(e.ToolCallID)
	case *ToolCallChunk:
		if e.ToolCallID != "" {
			g.call(e.ToolCallID)
		}
	case *ToolCallResult:
		if g.answered != nil {
			g.answered[e.ToolCallID] = true
		}
	}
}

// call records the start of a call.
func (g *Guard) call(id string) {
	if !slices.Contains(g.calls, id) { // a call can be opened again
		g.calls = append(g.calls, id)
	}
}

// pending returns the calls of this run without a result.
func (g *Guard) pending() []string {
	return slices.DeleteFunc(slices.Clone(g.calls), func(id string) bool { return g.answered[id] })
}

// checkFinish checks the rules for RUN_FINISHED.
func (g *Guard) checkFinish(e *RunFinished) error {
	if g.run != nil && (e.ThreadID != g.run.ThreadID || e.RunID != g.run.RunID) {
		return &OrderError{RuleRunIDs, EventRunFinished, e.RunID, fmt.Sprintf("ends thread %q, run %q, but begun was thread %q, run %q", e.ThreadID, e.RunID, g.run.ThreadID, g.run.RunID)}
	}
	if e.Outcome == nil {
		return nil
	}
	seen := make(map[string]bool, len(e.Outcome.Interrupts))
	for _, i := range e.Outcome.Interrupts {
		if seen[i.ID] {
			return &OrderError{RuleInterruptIDs, EventRunFinished, i.ID, "has the id of another interrupt"}
		}
		seen[i.ID] = true
	}
	if named := e.Outcome.PendingToolCallIDs; named != nil && g.run != nil && !g.awaits(named) {
		return &OrderError{RulePendingToolCalls, EventRunFinished, "", fmt.Sprintf("names the unanswered tool calls %q, but they are %q", named, g.pending())}
	}
	return nil
}

// awaits reports whether named are exactly the calls of this run without a result. In a stream that
// starts inside a run, a snapshot shows the run's earlier calls together with those of previous
// runs. Any of the calls in the snapshot may therefore be named.
func (g *Guard) awaits(named []string) bool {
	own := slices.DeleteFunc(slices.Clone(named), func(id string) bool {
		return slices.Contains(g.shown, id) && !slices.Contains(g.calls, id)
	})
	return slices.Equal(own, g.pending())
}

// unanswered returns the tool calls in messages that have no result there.
func unanswered(messages []Message) []string {
	var calls []string
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID)
		}
	}
	return slices.DeleteFunc(calls, func(id string) bool {
		return slices.ContainsFunc(messages, func(m Message) bool { return m.Role == RoleTool && m.ToolCallID == id })
	})
}
