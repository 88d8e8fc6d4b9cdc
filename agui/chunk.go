package agui

import (
	"fmt"
	"slices"
)

// ChunkExpander converts TEXT_MESSAGE_CHUNK, TOOL_CALL_CHUNK and REASONING_MESSAGE_CHUNK to start,
// content and end events. It passes all other events, preceded by the end events that they imply.
// Each owner (the parent agent or a subagent) has a lane with at most one open item. The zero value
// is ready to use. It is not safe for concurrent use.
//
// If a stream breaks off, its open items get no end events, since the producer has not ended them.
type ChunkExpander struct {
	lanes []lane // in the order in which they were opened
}

// lane is the open item of one owner's chunks.
type lane struct {
	owner string    // subagentRunId; "" = the parent agent
	kind  EventType // type of the chunks
	id    string    // of the message or tool call
	role  Role      // of a text message
	name  string    // of a text message's author, or of the tool
	// parent is the parentMessageId of a tool call.
	parent string
}

// Expand returns the events that e stands for, in order. The error is an *OrderError; the expander
// must not be used after it.
func (c *ChunkExpander) Expand(e Event) ([]Event, error) {
	switch e := e.(type) {
	case *TextMessageChunk:
		return c.text(e)
	case *ToolCallChunk:
		return c.toolCall(e)
	case *ReasoningMessageChunk:
		return c.reasoning(e)
	}
	return append(c.implied(e), e), nil
}

// passes reports whether Expand returns only e itself.
func (c *ChunkExpander) passes(e Event) bool {
	switch e.(type) {
	case *TextMessageChunk, *ToolCallChunk, *ReasoningMessageChunk:
		return false
	default:
		return len(c.lanes) == 0
	}
}

// implied closes the items that an explicit event ends, and returns their end events.
func (c *ChunkExpander) implied(e Event) []Event {
	switch e := e.(type) {
	case *RunStarted, *RunFinished, *RunError, *MessagesSnapshot:
		return c.closeAll()
	case *Raw, *ActivitySnapshot, *ActivityDelta, *ReasoningEncryptedValue, *SubagentStarted, *UnknownEvent:
		return nil
	default:
		return c.close(Owner(e))
	}
}

// closeAll closes the items of all owners.
func (c *ChunkExpander) closeAll() []Event {
	var ends []Event
	for len(c.lanes) > 0 {
		ends = append(ends, c.close(c.lanes[0].owner)...)
	}
	return ends
}

// close closes the item of an owner, if there is one.
func (c *ChunkExpander) close(owner string) []Event {
	i := slices.IndexFunc(c.lanes, func(l lane) bool { return l.owner == owner })
	if i < 0 {
		return nil
	}
	l := c.lanes[i]
	c.lanes = slices.Delete(c.lanes, i, i+1)
	switch l.kind {
	case EventTextMessageChunk:
		return []Event{&TextMessageEnd{MessageID: l.id, SubagentRunID: l.owner}}
	case EventToolCallChunk:
		return []Event{&ToolCallEnd{ToolCallID: l.id, SubagentRunID: l.owner}}
	default:
		return []Event{&ReasoningMessageEnd{MessageID: l.id, SubagentRunID: l.owner}}
	}
}

// text expands a chunk of a text message.
func (c *ChunkExpander) text(e *TextMessageChunk) ([]Event, error) {
	role := e.Role
	if role == "" {
		role = RoleAssistant
	}
	next := lane{kind: EventTextMessageChunk, id: e.MessageID, role: role, name: e.Name}
	l, events, err := c.route(next, e.SubagentRunID)
	switch {
	case err != nil:
		return nil, err
	case l.opened:
		start := &TextMessageStart{MessageID: l.id, Role: role, Name: e.Name, SubagentRunID: l.owner}
		start.BaseEvent = e.opener(e.Delta != "")
		events = append(events, start)
	case e.Role != "" && e.Role != l.role:
		return nil, conflict(l.lane, "role", string(e.Role), string(l.role))
	case e.Name != "" && e.Name != l.name:
		return nil, conflict(l.lane, "name", e.Name, l.name)
	}
	if e.hasContent(e.Delta, l.opened) {
		events = append(events, &TextMessageContent{e.content(), l.id, e.Delta, l.owner})
	}
	return events, nil
}

// toolCall expands a chunk of a tool call.
func (c *ChunkExpander) toolCall(e *ToolCallChunk) ([]Event, error) {
	next := lane{kind: EventToolCallChunk, id: e.ToolCallID, name: e.ToolCallName, parent: e.ParentMessageID}
	l, events, err := c.route(next, e.SubagentRunID)
	switch {
	case err != nil:
		return nil, err
	case l.opened && e.ToolCallName == "":
		return nil, &OrderError{RuleFirstChunk, EventToolCallChunk, e.ToolCallID, "the first chunk must have a toolCallName"}
	case l.opened:
		start := &ToolCallStart{ToolCallID: l.id, ToolCallName: e.ToolCallName, ParentMessageID: e.ParentMessageID, SubagentRunID: l.owner}
		start.BaseEvent = e.opener(e.Delta != "")
		events = append(events, start)
	case e.ToolCallName != "" && e.ToolCallName != l.name:
		return nil, conflict(l.lane, "toolCallName", e.ToolCallName, l.name)
	case e.ParentMessageID != "" && e.ParentMessageID != l.parent:
		return nil, conflict(l.lane, "parentMessageId", e.ParentMessageID, l.parent)
	}
	if e.hasContent(e.Delta, l.opened) {
		events = append(events, &ToolCallArgs{e.content(), l.id, e.Delta, l.owner})
	}
	return events, nil
}

// reasoning expands a chunk of a reasoning message.
func (c *ChunkExpander) reasoning(e *ReasoningMessageChunk) ([]Event, error) {
	l, events, err := c.route(lane{kind: EventReasoningMessageChunk, id: e.MessageID}, e.SubagentRunID)
	if err != nil {
		return nil, err
	}
	if l.opened {
		start := &ReasoningMessageStart{MessageID: l.id, SubagentRunID: l.owner}
		start.BaseEvent = e.opener(e.Delta != "")
		events = append(events, start)
	}
	if e.hasContent(e.Delta, l.opened) {
		events = append(events, &ReasoningMessageContent{e.content(), l.id, e.Delta, l.owner})
	}
	return events, nil
}

// hasContent reports whether a chunk results in a content event. That is the case if it has a delta
// or a raw event, which the start event does not carry. A chunk of an already open item also needs
// one for its metadata and unknown members, which would be lost otherwise.
func (b *BaseEvent) hasContent(delta string, opened bool) bool {
	return delta != "" || b.RawEvent != nil || !opened && (b.Metadata != nil || b.Unknown != nil)
}

// opener returns the base members of the start event for a chunk. Metadata is on both events,
// because merging it twice has the same result. The other members are on the content event if there
// is one.
func (b *BaseEvent) opener(withContent bool) BaseEvent {
	base := BaseEvent{Timestamp: b.Timestamp, Metadata: b.Metadata}
	if !withContent && b.RawEvent == nil {
		base.Unknown = b.Unknown
	}
	return base
}

// content returns the base members of the content event for a chunk.
func (b *BaseEvent) content() BaseEvent { return *b }

// routed is the lane of a chunk.
type routed struct {
	lane
	// opened is set if the chunk is the first of its item.
	opened bool
}

// route returns the lane of a chunk, and opens it if necessary. The returned events are the ends
// that opening implies. tag is the chunk's subagentRunId.
func (c *ChunkExpander) route(next lane, tag string) (routed, []Event, error) {
	owner, err := c.ownerFor(next, tag)
	if err != nil {
		return routed{}, nil, err
	}
	i := slices.IndexFunc(c.lanes, func(l lane) bool { return l.owner == owner })
	if i >= 0 && c.lanes[i].kind == next.kind && (next.id == "" || next.id == c.lanes[i].id) {
		return routed{lane: c.lanes[i]}, nil, nil
	}
	events := c.close(owner)
	if next.id == "" {
		return routed{}, nil, &OrderError{RuleFirstChunk, next.kind, "", "the first chunk must have an id"}
	}
	next.owner = owner
	c.lanes = append(c.lanes, next)
	return routed{lane: next, opened: true}, events, nil
}

// ownerFor returns the owner of a chunk. An ID of an open item decides, then the tag. A chunk with
// neither belongs to the parent agent's open item, or else to the only open item of its kind.
func (c *ChunkExpander) ownerFor(next lane, tag string) (string, error) {
	if next.id != "" {
		for _, l := range c.lanes {
			if l.kind == next.kind && l.id == next.id {
				if tag != "" && tag != l.owner {
					return "", conflict(l, "subagentRunId", tag, l.owner)
				}
				return l.owner, nil
			}
		}
		return tag, nil
	}
	if tag != "" {
		return tag, nil
	}
	var owners []string
	for _, l := range c.lanes {
		if l.kind != next.kind {
			continue
		}
		if l.owner == "" {
			return "", nil
		}
		owners = append(owners, l.owner)
	}
	switch len(owners) {
	case 0:
		return "", nil
	case 1:
		return owners[0], nil
	default:
		return "", &OrderError{RuleChunkAmbiguous, next.kind, "", fmt.Sprintf("has neither an id nor a subagentRunId, and %d items are open", len(owners))}
	}
}

// conflict returns the error of a chunk that contradicts the open item.
func conflict(l lane, member, got, want string) error {
	return &OrderError{RuleChunkConflict, l.kind, l.id, fmt.Sprintf("%s %q differs from that of the open item, %q", member, got, want)}
}
