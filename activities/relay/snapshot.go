package relay

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
)

// A MESSAGES_SNAPSHOT of the remote has the messages as the remote knows them. It changes only messages
// of the remote:
//
//   - Messages and calls that the run has not shown are shown: some servers stream only a part.
//   - Messages of this run that differ are corrected, with a MESSAGES_SNAPSHOT of the whole thread.
//   - Messages of users, of other agents and of earlier runs stay as they are, and none is removed.
//
// A message may have another ID there than in its events, so calls are compared by the ID of the call,
// and texts by their content.

// addSnapshot takes in the messages of a snapshot, with the remote's IDs.
func (r *Relay) addSnapshot(ctx context.Context, received []agui.Message) error {
	r.last = received
	if err := r.emit(ctx, r.missing(received)...); err != nil {
		return err
	}
	if len(r.verifier.Open()) > 0 { // a message that is not complete must not be corrected
		return nil
	}
	return r.correct(ctx, received)
}

// missing returns the events that show what a snapshot has, and the thread does not.
func (r *Relay) missing(received []agui.Message) (events []agui.Event) {
	for _, m := range received {
		part, ok := r.unshown(m)
		if !ok || r.isOfEarlierRun(m.ID) {
			continue
		}
		r.add(m.ID)
		for _, c := range part.ToolCalls {
			r.add(c.ID)
		}
		events = append(events, show(agui.RenameMessageIDs([]agui.Message{part}, r.OwnID)[0])...)
	}
	return events
}

// unshown returns the part of a remote's message that the thread does not have; ok = there is one. Nothing
// of the messages of users, and of activities, is the remote's to show.
func (r *Relay) unshown(m agui.Message) (part agui.Message, ok bool) {
	part = agui.Message{ID: m.ID, Role: m.Role, Name: m.Name, SubagentRunID: m.SubagentRunID}
	hasNewText := m.Content.Text() != "" && !r.hasText(m)
	switch m.Role {
	case agui.RoleTool:
		part.ToolCallID, part.Content = m.ToolCallID, m.Content
		return part, m.ToolCallID != "" && !r.hasResult(r.OwnID(m.ToolCallID))
	case agui.RoleReasoning:
		part.Content = m.Content
		return part, hasNewText
	case agui.RoleAssistant:
		if hasNewText {
			part.Content = m.Content
		}
		part.ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), func(c agui.ToolCall) bool { return r.hasCall(r.OwnID(c.ID)) })
		return part, hasNewText || len(part.ToolCalls) > 0
	}
	return part, false
}

// all returns the messages of the thread before the run, and those of the run.
func (r *Relay) all() []agui.Message { return slices.Concat(r.earlier, r.reducer.Messages()) }

// hasResult reports whether the thread has the result of a call.
func (r *Relay) hasResult(callID string) bool {
	return slices.ContainsFunc(r.all(), func(m agui.Message) bool { return m.Role == agui.RoleTool && m.ToolCallID == callID })
}

// hasText reports whether the thread has the text of a message, under its ID or another one.
func (r *Relay) hasText(m agui.Message) bool {
	own, text := r.OwnID(m.ID), m.Content.Text()
	return slices.ContainsFunc(r.all(), func(other agui.Message) bool {
		return other.Role == m.Role && (other.ID == own && other.Content.Text() != "" || other.Content.Text() == text)
	})
}

// hasCall reports whether the thread has a call.
func (r *Relay) hasCall(id string) bool {
	return slices.ContainsFunc(r.all(), func(m agui.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == id })
	})
}

// correct corrects the messages of the run that differ from a snapshot.
func (r *Relay) correct(ctx context.Context, received []agui.Message) error {
	messages, isCorrected := r.reducer.Messages(), false
	for _, m := range received {
		for i := range messages {
			isCorrected = r.correctMessage(&messages[i], m) || isCorrected
		}
	}
	switch {
	case !isCorrected:
		return nil
	case r.request.Before == nil: // only the done record has the correction
		return r.reducer.Apply(&agui.MessagesSnapshot{Messages: messages})
	}
	return r.emit(ctx, &agui.MessagesSnapshot{Messages: slices.Concat(r.request.Before, messages)})
}

// correctMessage corrects a message of the run by one of a snapshot, and reports whether they differ.
func (r *Relay) correctMessage(own *agui.Message, m agui.Message) (isCorrected bool) {
	shown, text := own.Content.Text(), m.Content.Text()
	isSame := own.ID == r.OwnID(m.ID)
	if m.Role == agui.RoleTool {
		isSame = own.ToolCallID == r.OwnID(m.ToolCallID)
	}
	if isSame && own.Role == m.Role && m.Role != agui.RoleActivity && text != "" && shown != "" && shown != text {
		own.Content, isCorrected = m.Content, true
	}
	for _, c := range m.ToolCalls {
		for i := range own.ToolCalls {
			if call := &own.ToolCalls[i]; call.ID == r.OwnID(c.ID) && (call.Name != c.Name || call.Arguments != c.Arguments) {
				call.Name, call.Arguments, isCorrected = c.Name, c.Arguments, true
			}
		}
	}
	return isCorrected
}

// withoutBefore returns messages without those from before the run.
func (r *Relay) withoutBefore(messages []agui.Message) (own []agui.Message) {
	for _, m := range messages {
		if !slices.ContainsFunc(r.request.Before, func(b agui.Message) bool { return b.ID == m.ID }) {
			own = append(own, m)
		}
	}
	return own
}

// show returns the events of a whole message.
func show(m agui.Message) (events []agui.Event) {
	switch m.Role {
	case agui.RoleAssistant:
		if text := m.Content.Text(); text != "" {
			events = append(events, &agui.TextMessageStart{MessageID: m.ID, Role: agui.RoleAssistant, Name: m.Name, SubagentRunID: m.SubagentRunID},
				&agui.TextMessageContent{MessageID: m.ID, Delta: text, SubagentRunID: m.SubagentRunID}, &agui.TextMessageEnd{MessageID: m.ID, SubagentRunID: m.SubagentRunID})
		}
		for _, c := range m.ToolCalls {
			events = append(events, &agui.ToolCallStart{ToolCallID: c.ID, ToolCallName: c.Name, ParentMessageID: m.ID, SubagentRunID: m.SubagentRunID})
			if c.Arguments != "" {
				events = append(events, &agui.ToolCallArgs{ToolCallID: c.ID, Delta: c.Arguments, SubagentRunID: m.SubagentRunID})
			}
			events = append(events, &agui.ToolCallEnd{ToolCallID: c.ID, SubagentRunID: m.SubagentRunID})
		}
	case agui.RoleTool:
		events = append(events, &agui.ToolCallResult{MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.Content, SubagentRunID: m.SubagentRunID})
	case agui.RoleReasoning:
		events = append(events, &agui.ReasoningStart{MessageID: m.ID}, &agui.ReasoningMessageStart{MessageID: m.ID},
			&agui.ReasoningMessageContent{MessageID: m.ID, Delta: m.Content.Text()}, &agui.ReasoningMessageEnd{MessageID: m.ID}, &agui.ReasoningEnd{MessageID: m.ID})
	}
	return events
}
