package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// A MESSAGES_SNAPSHOT of a remote replaces the messages of its client. The relay applies it to the
// messages of this run:
//
//	messages at the end that nobody has   their events are written, as if they had been streamed
//	other differences                     a MESSAGES_SNAPSHOT of the run's messages is written, and before it
//	                                      an empty one if their order changes: a snapshot moves no message
//
// The log keeps that snapshot; a reader gets one of the whole conversation at the end of the run instead
// (view.Projection). Servers stream calls without arguments or in other messages, and results with random
// IDs, before the snapshot has the final ones. A result keeps the ID that clients know. The remote compares the
// messages of the next input by its own ID, which the done record has (stream.Result.ProviderIDs).

// addSnapshot writes what a snapshot of the remote changes.
func (r *Relay) addSnapshot(ctx context.Context, snapshot *agui.MessagesSnapshot) error {
	stated := r.ofRun(snapshot.Messages)
	r.keepResultIDs(stated)
	if err := r.emit(ctx, r.missingEvents(stated)...); err != nil {
		return err
	}
	before := r.reducer.Messages()
	restated := agui.NewReducer(before, nil)
	restatement := &agui.MessagesSnapshot{Messages: stated}
	if err := restated.Apply(restatement); err != nil {
		return err
	}
	after := restated.Messages()
	if slices.EqualFunc(before, after, isSame) {
		return nil
	}
	if !hasOrder(after, stated) {
		if err := r.emit(ctx, &agui.MessagesSnapshot{}); err != nil {
			return err
		}
	}
	return r.emit(ctx, restatement)
}

// hasOrder reports whether messages are in the order of a list, except for those that it lacks.
func hasOrder(messages, list []agui.Message) bool {
	last := -1
	for _, m := range messages {
		at := slices.IndexFunc(list, func(l agui.Message) bool { return l.ID == m.ID })
		if at >= 0 && at < last {
			return false
		}
		last = max(last, at)
	}
	return true
}

// ofRun returns the messages of a snapshot that this run has made: those of agents and tools after the
// last one that the input had, or after the last one of a user if the remote gives messages other IDs.
// Messages before it that the input lacks are of runs that the thread does not have, for instance because
// they have failed.
func (r *Relay) ofRun(messages []agui.Message) []agui.Message {
	last, lastUser := -1, -1
	for i, m := range messages {
		if r.isEarlier(m.ID) {
			last = i
		}
		if m.Role == agui.RoleUser {
			lastUser = i
		}
	}
	if last < 0 {
		last = lastUser
	}
	return slices.DeleteFunc(slices.Clone(messages[last+1:]), func(m agui.Message) bool {
		return m.Role == agui.RoleUser || m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper
	})
}

// keepResultIDs gives the results of a snapshot the IDs with which they were streamed, and notes those that
// the snapshot has.
func (r *Relay) keepResultIDs(messages []agui.Message) {
	have := r.reducer.Messages()
	for i, m := range messages {
		at := slices.IndexFunc(have, func(h agui.Message) bool { return isResult(h, m.ToolCallID) })
		if m.Role != agui.RoleTool || at < 0 || have[at].ID == m.ID {
			continue
		}
		if r.changed == nil {
			r.changed = map[string]string{}
		}
		r.changed[have[at].ID] = remote.OriginalID(r.agent, m.ID)
		messages[i].ID = have[at].ID
	}
}

// isResult reports whether a message is the result of a call.
func isResult(m agui.Message, call string) bool {
	return m.Role == agui.RoleTool && m.ToolCallID == call
}

// isEarlier reports whether the thread had an item before the run.
func (r *Relay) isEarlier(own string) bool {
	for _, id := range r.known {
		if id == own {
			return true
		}
	}
	return false
}

// missingEvents returns the events of the last messages, those that clients do not have in any form: neither the
// message, nor one of its calls, nor a result of its call.
func (r *Relay) missingEvents(messages []agui.Message) (events []agui.Event) {
	have := r.reducer.Messages()
	for _, m := range messages {
		isKnown := slices.ContainsFunc(have, func(h agui.Message) bool {
			return h.ID == m.ID || m.Role == agui.RoleTool && isResult(h, m.ToolCallID) || slices.ContainsFunc(h.ToolCalls, func(c agui.ToolCall) bool { return hasCall(m, c.ID) })
		})
		if isKnown {
			events = nil
			continue
		}
		events = append(events, eventsOf(m)...)
	}
	return events
}

// hasResult reports whether messages have a result of a call.
func hasResult(messages []agui.Message, call string) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return isResult(m, call) })
}

// hasCall reports whether a message has a tool call.
func hasCall(m agui.Message, id string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == id })
}

// isSame reports whether clients show two messages alike, and a remote cannot tell them apart.
func isSame(a, b agui.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.Error == b.Error && hasSameContent(a.Content, b.Content) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(c, d agui.ToolCall) bool {
			return c.ID == d.ID && c.Name == d.Name && compact(c.Arguments) == compact(d.Arguments)
		})
}

// hasSameContent reports whether two contents are equal. No content is an empty text.
func hasSameContent(a, b agui.Content) bool {
	isEmpty := func(c agui.Content) bool { return c.IsAbsent() || c.IsText() && c.Text() == "" }
	return isEmpty(a) && isEmpty(b) || a.Equal(b)
}

// compact returns arguments without insignificant space.
func compact(arguments string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) != nil {
		return arguments
	}
	return b.String()
}

// eventsOf returns the events of a whole message.
func eventsOf(m agui.Message) (events []agui.Event) {
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
