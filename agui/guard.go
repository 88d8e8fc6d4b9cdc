package agui

import (
	"fmt"
	"slices"
)

// Guard checks the events of a producer before they are sent. Beside the order, which a Verifier
// checks for consumers too, these are the rules that clients do not enforce. The zero value is
// ready for a stream from its beginning. It is not safe for concurrent use.
//
// As with a Verifier, a refused event leaves the guard as it was.
type Guard struct {
	verifier Verifier
	run      *RunStarted // nil before the first, and in a stream that was resumed
	// calls are those that this run has started, in order; answered are those that have a result.
	calls    []string
	answered map[string]bool
	shown    []string // calls without a result in the last snapshot of this run
}

// ResumedGuard returns a guard for a stream that begins inside a run, behind a cursor. What is
// continued or closed there without having been opened was opened before.
func ResumedGuard() *Guard { return &Guard{verifier: resumedVerifier()} }

// Check takes the next event. An error is an *OrderError. It does not check what Encode does. An
// event that has material of no version of the protocol is refused, and stripped of it.
func (g *Guard) Check(e Event) error {
	t := e.EventType()
	if _, foreign := Strip(e); len(foreign) > 0 {
		return &OrderError{RuleUndescribed, t, "", foreign[0].Pointer + ": " + foreign[0].Detail}
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

// Open returns what is open; see Verifier.
func (g *Guard) Open() []OpenItem { return g.verifier.Open() }

// End reports whether the stream may end here: every run that has begun must have ended.
func (g *Guard) End() error {
	if g.verifier.phase == phaseFinished || g.verifier.phase == phaseFailed {
		return nil
	}
	return &OrderError{Rule: RuleTruncated, Detail: "the stream ends without RUN_FINISHED or RUN_ERROR"}
}

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

func (g *Guard) call(id string) {
	if !slices.Contains(g.calls, id) { // a call may be reopened
		g.calls = append(g.calls, id)
	}
}

// pending returns the calls that this run has not answered.
func (g *Guard) pending() []string {
	return slices.DeleteFunc(slices.Clone(g.calls), func(id string) bool { return g.answered[id] })
}

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

// awaits reports whether these are the calls that the run has not answered. Who joins a run late is
// shown its calls in a snapshot, among those of runs before it: of these any may be named.
func (g *Guard) awaits(named []string) bool {
	own := slices.DeleteFunc(slices.Clone(named), func(id string) bool {
		return slices.Contains(g.shown, id) && !slices.Contains(g.calls, id)
	})
	return slices.Equal(own, g.pending())
}

// unanswered returns the tool calls of messages that have no result.
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
