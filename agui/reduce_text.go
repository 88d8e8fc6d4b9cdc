package agui

import "strings"

// startText applies TEXT_MESSAGE_START.
func (r *Reducer) startText(e *TextMessageStart) {
	role := e.Role
	if role == "" {
		role = RoleAssistant
	}
	r.openMessage(e, Message{ID: e.MessageID, Role: role, Name: e.Name, Content: TextContent(""), SubagentRunID: e.SubagentRunID})
}

// openMessage adds a message unless its ID exists. A closed message can be opened again; it keeps
// its content.
func (r *Reducer) openMessage(e Event, m Message) {
	existing := r.byID[m.ID]
	switch {
	case existing == nil:
		existing = &m
		r.add(existing)
	case existing.Role == RoleActivity:
		r.warn(e.EventType(), "/messageId", "message %s is an activity message", m.ID)
		return
	}
	mergeMetadata(&existing.Metadata, e.Base().Metadata)
}

// textTarget returns the message of a content or end event. It returns nil, with a warning, if
// there is none or if it is an activity message.
func (r *Reducer) textTarget(e Event, id string) *Message {
	m := r.byID[id]
	switch {
	case m == nil:
		r.warn(e.EventType(), "/messageId", "no message %s", id)
	case m.Role == RoleActivity:
		r.warn(e.EventType(), "/messageId", "message %s is an activity message", id)
		return nil
	}
	return m
}

// appendText applies a content event of a text or reasoning message.
func (r *Reducer) appendText(e Event, id, delta string) {
	m := r.textTarget(e, id)
	if m == nil {
		return
	}
	text := m.Content.text // "" for parts, which the reference client replaces
	m.Content = TextContent(r.grow(textKey{id: id}, text, delta))
	mergeMetadata(&m.Metadata, e.Base().Metadata)
}

// grow returns text+delta. The builder of the key already contains text, so grow copies only delta.
// Strings of a strings.Builder stay valid while it grows.
func (r *Reducer) grow(key textKey, text, delta string) string {
	b := r.texts[key]
	if b == nil {
		b = new(strings.Builder)
		b.WriteString(text)
		r.texts[key] = b
	}
	b.WriteString(delta)
	return b.String()
}

// endText applies an end event of a text or reasoning message.
func (r *Reducer) endText(e Event, id string) {
	delete(r.texts, textKey{id: id})
	if m := r.textTarget(e, id); m != nil {
		mergeMetadata(&m.Metadata, e.Base().Metadata)
	}
}

// encrypt applies REASONING_ENCRYPTED_VALUE.
func (r *Reducer) encrypt(e *ReasoningEncryptedValue) {
	if e.Subtype == EncryptedToolCall {
		if at, ok := r.calls[e.EntityID]; ok {
			c := at.call()
			c.EncryptedValue, c.EncryptedValueType = e.EncryptedValue, e.EncryptedValueType
			return
		}
	} else if m := r.byID[e.EntityID]; m != nil && m.Role != RoleActivity {
		m.EncryptedValue, m.EncryptedValueType = e.EncryptedValue, e.EncryptedValueType
		return
	}
	r.warn(e.EventType(), "/entityId", "no %s %s to keep the value", e.Subtype, e.EntityID)
}
