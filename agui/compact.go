package agui

import "strings"

// Compact merges the deltas of each text, tool call and reasoning message into its first one, also
// where items interleave, so that start, one content event and end remain. Chunks are expanded.
// Everything else stays as it is and where it is: what was legal stays legal, and reduces to the
// same. The events given are not changed.
//
// Deltas are not merged over what a client reads as a new beginning, which is an end, a run's event
// or a snapshot of messages, nor when they carry metadata or anything else of their own.
func Compact(events []Event) []Event {
	c := compaction{out: make([]Event, 0, len(events)), grows: make(map[growing]*growth)}
	var chunks ChunkExpander
	for _, e := range events {
		expanded, err := chunks.Expand(e)
		if err != nil {
			expanded = []Event{e} // nobody can place it; a verifier will say so
		}
		for _, e := range expanded {
			c.add(e)
		}
	}
	for _, g := range c.grown {
		c.out[g.at] = withDelta(c.out[g.at], g.text.String())
	}
	return c.out
}

// compaction is a list of events that is being compacted.
type compaction struct {
	out   []Event
	grows map[growing]*growth
	grown []*growth // those with more than one delta
}

// growing names an item by the type of its content events and its id.
type growing struct {
	content EventType
	id      string
}

// growth is what an item's first content event grows to.
type growth struct {
	at     int // of that event in the list
	owner  string
	text   strings.Builder
	merged bool
}

func (c *compaction) add(e Event) {
	switch e := e.(type) {
	case *TextMessageStart:
		delete(c.grows, growing{EventTextMessageContent, e.MessageID})
	case *TextMessageEnd:
		delete(c.grows, growing{EventTextMessageContent, e.MessageID})
	case *ToolCallStart:
		delete(c.grows, growing{EventToolCallArgs, e.ToolCallID})
	case *ToolCallEnd:
		delete(c.grows, growing{EventToolCallArgs, e.ToolCallID})
	case *ReasoningMessageStart:
		delete(c.grows, growing{EventReasoningMessageContent, e.MessageID})
	case *ReasoningMessageEnd:
		delete(c.grows, growing{EventReasoningMessageContent, e.MessageID})
	case *TextMessageContent:
		c.grow(e, e.MessageID, e.Delta, e.SubagentRunID)
		return
	case *ToolCallArgs:
		c.grow(e, e.ToolCallID, e.Delta, e.SubagentRunID)
		return
	case *ReasoningMessageContent:
		c.grow(e, e.MessageID, e.Delta, e.SubagentRunID)
		return
	case *RunStarted, *RunFinished, *RunError, *MessagesSnapshot, *ActivitySnapshot:
		clear(c.grows) // an activity may take the place of any message
	}
	c.out = append(c.out, e)
}

// grow merges a delta into the item's first, or makes it that.
func (c *compaction) grow(e Event, id, delta, owner string) {
	item, b := growing{e.EventType(), id}, e.Base()
	plain := b.Metadata == nil && b.RawEvent == nil && b.Unknown == nil
	switch item.content { // a text and a reasoning message by one id are one message
	case EventTextMessageContent:
		delete(c.grows, growing{EventReasoningMessageContent, id})
	case EventReasoningMessageContent:
		delete(c.grows, growing{EventTextMessageContent, id})
	}
	g := c.grows[item]
	if g == nil || !plain || g.owner != owner {
		c.out = append(c.out, e)
		delete(c.grows, item)
		if plain {
			g = &growth{at: len(c.out) - 1, owner: owner}
			g.text.WriteString(delta)
			c.grows[item] = g
		}
		return
	}
	g.text.WriteString(delta)
	if !g.merged {
		g.merged = true
		c.grown = append(c.grown, g)
	}
}

// withDelta returns a copy of a content event with another delta.
func withDelta(e Event, delta string) Event {
	switch e := e.(type) {
	case *TextMessageContent:
		grown := *e
		grown.Delta = delta
		return &grown
	case *ToolCallArgs:
		grown := *e
		grown.Delta = delta
		return &grown
	case *ReasoningMessageContent:
		grown := *e
		grown.Delta = delta
		return &grown
	}
	return e
}
