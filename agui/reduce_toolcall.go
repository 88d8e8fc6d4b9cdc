package agui

import "slices"

// startToolCall applies TOOL_CALL_START. It adds a new call to its parent message. A known call
// keeps its position and arguments; only its name and metadata change.
func (r *Reducer) startToolCall(e *ToolCallStart) {
	at, known := r.calls[e.ToolCallID]
	if !known {
		m := r.callParent(e)
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: e.ToolCallID})
		at = callAt{m, len(m.ToolCalls) - 1}
		r.calls[e.ToolCallID] = at
	}
	c := at.call()
	if known && c.Name != e.ToolCallName {
		r.warn(e.EventType(), "/toolCallName", "tool call %s changes its name from %s to %s", c.ID, c.Name, e.ToolCallName)
	}
	c.Name = e.ToolCallName
	mergeMetadata(&c.Metadata, e.Metadata)
}

// callParent returns the assistant message for a new call. It creates the message if necessary,
// with the ID of the missing parent, or else with the ID of the call.
func (r *Reducer) callParent(e *ToolCallStart) *Message {
	id := e.ParentMessageID
	parent := r.byID[id]
	switch {
	case id == "":
		id = e.ToolCallID
	case parent == nil:
	case parent.Role == RoleAssistant:
		return parent
	default:
		r.warn(e.EventType(), "/parentMessageId", "message %s is a %s message and cannot hold a tool call", id, parent.Role)
		id = e.ToolCallID
	}
	m := &Message{ID: id, Role: RoleAssistant, SubagentRunID: e.SubagentRunID}
	r.add(m)
	return m
}

// appendArgs applies TOOL_CALL_ARGS.
func (r *Reducer) appendArgs(e *ToolCallArgs) {
	at, ok := r.calls[e.ToolCallID]
	if !ok {
		r.warn(e.EventType(), "/toolCallId", "no tool call %s", e.ToolCallID)
		return
	}
	c := at.call()
	c.Arguments = r.grow(textKey{id: c.ID, call: true}, c.Arguments, e.Delta)
	mergeMetadata(&c.Metadata, e.Metadata)
}

// endToolCall applies TOOL_CALL_END.
func (r *Reducer) endToolCall(e *ToolCallEnd) {
	at, ok := r.calls[e.ToolCallID]
	if !ok {
		r.warn(e.EventType(), "/toolCallId", "no tool call %s", e.ToolCallID)
		return
	}
	delete(r.texts, textKey{id: e.ToolCallID, call: true})
	mergeMetadata(&at.call().Metadata, e.Metadata)
}

// insertResult applies TOOL_CALL_RESULT. It inserts the tool message after the message with the
// call and after existing results; without such a message, at the end.
func (r *Reducer) insertResult(e *ToolCallResult) {
	m := &Message{ID: e.MessageID, Role: RoleTool, ToolCallID: e.ToolCallID, Content: e.Content, SubagentRunID: e.SubagentRunID}
	mergeMetadata(&m.Metadata, e.Metadata)
	r.index(m)
	at := len(r.messages)
	if call, ok := r.calls[e.ToolCallID]; ok {
		at = slices.Index(r.messages, call.message) + 1
		for at < len(r.messages) && r.messages[at].Role == RoleTool {
			at++
		}
	}
	r.messages = slices.Insert(r.messages, at, m)
}
