package stream

import (
	"slices"

	"github.com/perdure/perdure/agui"
)

// A snapshot reads a step's result, not its events, except for those that change what lanes share.
// This file tells which events those are; a record with one has the shared flag in its header.

// sharesEvent reports whether an event changes the state or an activity, which lanes share.
func sharesEvent(t agui.EventType) bool {
	switch t {
	case agui.EventStateSnapshot, agui.EventStateDelta, agui.EventActivitySnapshot, agui.EventActivityDelta:
		return true
	}
	return false
}

// Shares reports whether snapshots must read an event of the lane. Subagents write concurrently
// with others, so this includes the beginning of their messages: clients show a message where it
// begins.
func (l Lane) Shares(t agui.EventType) bool { return sharesEvent(t) || l.Begins(t) }

// Begins reports whether an event of the lane may begin a message of a subagent.
func (l Lane) Begins(t agui.EventType) bool {
	switch t {
	case agui.EventTextMessageStart, agui.EventReasoningMessageStart, agui.EventToolCallStart:
		return l.IsSubagentLane() && l.IsAgentLane()
	}
	return false
}

// sharesAny reports whether one of the encoded events is shared.
func (l Lane) sharesAny(events [][]byte) bool {
	return slices.ContainsFunc(events, func(raw []byte) bool { return l.Shares(agui.TypeOf(raw)) })
}
