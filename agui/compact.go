package agui

import "strings"

// Compact merges the deltas of each text, tool call and reasoning message into one content event,
// at the position of the first. Items may interleave. Chunks are expanded. All other events stay
// unchanged at their position. A valid stream remains valid, and a Reducer has the same result.
// Compact does not change the given events.
//
// Deltas are not merged across events that begin the item anew for a client: an end, an event of a
// run, a snapshot of messages or an activity. A delta with metadata, a raw event or unknown members
// of its own is not merged either.
func Compact(events []Event) []Event {
	c := compaction{out: make([]Event, 0, len(events)), grows: make(map[growing]*growth)}
	var chunks ChunkExpander
	for _, e := range events {
		expanded, err := chunks.Expand(e)
		if err != nil {
			expanded = []Event{e} // keep it: a verifier reports the error
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

// compaction is the state of one Compact.
type compaction struct {
	out   []Event             // events so far; those in grown do not have their whole delta yet
	grows map[growing]*growth // content events that further deltas can be merged into
	grown []*growth           // entries of grows, past or present, with more than one delta
}

// growing identifies an item by the type of its content events and its ID.
type growing struct {
	content EventType
	id      string
}

// growth collects the deltas of one content event.
type growth struct {
	at     int // index of the event in out
	owner  string
	text   strings.Builder
	merged bool // has more than one delta
}

// add processes one event that is no chunk.
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
		clear(c.grows) // an activity can replace any message
	}
	c.out = append(c.out, e)
}

// grow merges a delta into the content event of its item, or starts a new content event.
func (c *compaction) grow(e Event, id, delta, owner string) {
	item, b := growing{e.EventType(), id}, e.Base()
	plain := b.Metadata == nil && b.RawEvent == nil && b.Unknown == nil
	// A text message and a reasoning message with the same ID are one message for a client.
	switch item.content {
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
