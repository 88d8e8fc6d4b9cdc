package stream

import (
	"slices"

	"github.com/perdure/perdure/agui"
)

// sharesEvent tells whether an event changes what lanes share, so that reduction must look at it.
func sharesEvent(t agui.EventType) bool {
	switch t {
	case agui.EventStateSnapshot, agui.EventStateDelta, agui.EventActivitySnapshot, agui.EventActivityDelta:
		return true
	}
	return false
}

// Shares is sharesEvent on a lane. Subagents speak at the same time as others, so where their messages
// begin is looked at too: that is where clients have them.
func (l Lane) Shares(t agui.EventType) bool { return sharesEvent(t) || l.Begins(t) }

// Begins tells whether an event may begin a message of a subagent.
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
