package stream

import (
	"slices"

	"github.com/perdure/perdure/agui"
)

// sharesEvent reports whether an event changes what lanes share: the state, or an activity.
func sharesEvent(t agui.EventType) bool {
	switch t {
	case agui.EventStateSnapshot, agui.EventStateDelta, agui.EventActivitySnapshot, agui.EventActivityDelta:
		return true
	}
	return false
}

// Shares reports whether snapshots must read an event of a lane. Subagents write concurrently with
// others, so this includes the beginning of their messages: clients have a message where it begins.
func (l Lane) Shares(t agui.EventType) bool { return sharesEvent(t) || l.Begins(t) }

// Begins reports whether an event may begin a message of a subagent.
func (l Lane) Begins(t agui.EventType) bool {
	switch t {
	case agui.EventTextMessageStart, agui.EventReasoningMessageStart, agui.EventToolCallStart:
		return l.Subagents() && l.Speaks()
	}
	return false
}

func (l Lane) sharesAny(events [][]byte) bool {
	return slices.ContainsFunc(events, func(raw []byte) bool { return l.Shares(agui.TypeOf(raw)) })
}
