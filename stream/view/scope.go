package view

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// scopes are the steps and subagents of a run, in the order in which they began. They begin and end
// in open records, and in the records of an attempt when it is done, so a superseded attempt does
// not change them. Steps that have ended are removed; subagents stay, because open ones may have them
// as parents.
type scopes []scope

// scope is a step or a subagent, from its beginning to its end.
type scope struct {
	position stream.Position
	started  agui.Event
	ended    agui.Event // nil while it is open
}

// track notes which scope an event at a position begins or ends. Other events change nothing.
func (s *scopes) track(raw []byte, position stream.Position) error {
	if !changesScopes(raw) {
		return nil
	}
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case *agui.StepStarted, *agui.SubagentStarted:
		*s = append(*s, scope{position: position, started: e})
	case *agui.StepFinished:
		*s = slices.DeleteFunc(*s, func(o scope) bool {
			step, ok := o.started.(*agui.StepStarted)
			return ok && step.StepName == e.StepName && step.SubagentRunID == e.SubagentRunID
		})
	case *agui.SubagentFinished:
		s.markEnded(e.SubagentRunID, e)
	case *agui.SubagentError:
		s.markEnded(e.SubagentRunID, e)
	}
	return nil
}

// changesScopes reports whether an event begins or ends a scope.
func changesScopes(raw []byte) bool {
	switch agui.TypeOf(raw) {
	case agui.EventStepStarted, agui.EventStepFinished, agui.EventSubagentStarted, agui.EventSubagentFinished, agui.EventSubagentError:
		return true
	}
	return false
}

// trackAll tracks the events of an attempt that is done.
func (s *scopes) trackAll(events []shownEvent) error {
	for _, e := range events {
		if err := s.track(e.event, e.position); err != nil {
			return err
		}
	}
	return nil
}

// markEnded notes the event that ended a subagent.
func (s scopes) markEnded(subagentRunID string, with agui.Event) {
	for i, o := range s {
		if a, ok := o.started.(*agui.SubagentStarted); ok && a.SubagentRunID == subagentRunID {
			s[i].ended = with
		}
	}
}

// closingEvents returns the events that end the open scopes, the one that began last first. An open
// subagent has failed, so it ends with SUBAGENT_ERROR and a message.
func (s scopes) closingEvents(message string) []agui.Event {
	var events []agui.Event
	for _, o := range slices.Backward(s) {
		switch e := o.started.(type) {
		case *agui.StepStarted:
			events = append(events, &agui.StepFinished{StepName: e.StepName, SubagentRunID: e.SubagentRunID})
		case *agui.SubagentStarted:
			if o.ended == nil {
				events = append(events, &agui.SubagentError{SubagentRunID: e.SubagentRunID, Message: message})
			}
		}
	}
	return events
}

// The messages of subagents that are still open at the end of the run, and at that of an attempt.
const (
	runEnded     = "the run has ended"
	attemptEnded = "the attempt has ended"
)

// needed returns the scopes that a joining reader has to know: the open ones and their ancestors,
// in order. It looks from the end, because parents begin before their children.
func (s scopes) needed() scopes {
	var open scopes
	parents := map[string]bool{}
	for _, o := range slices.Backward(s) {
		if a, ok := o.started.(*agui.SubagentStarted); ok {
			if o.ended != nil && !parents[a.SubagentRunID] {
				continue
			}
			parents[a.ParentSubagentRunID] = true
		}
		open = append(open, o)
	}
	slices.Reverse(open)
	return open
}
