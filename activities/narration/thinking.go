package narration

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// thinking turns the reasoning of one completion into events. Each block of the model is a
// reasoning message of its own, with the opaque data that the provider wants back, so that a later
// request can return it block by block. The Narrator owns it.
type thinking struct {
	run  stream.Run
	step string
	// blocks are the blocks so far, hidden ones included. open tells that the message of the last
	// block is open for clients; ended that the provider has closed the block.
	blocks []*thought
	open   bool
	ended  bool
}

// thought is one block of reasoning. sealed is the encrypted value of SealReasoning; "" = the
// provider wants nothing back.
type thought struct {
	id     string
	text   strings.Builder
	sealed string
}

// add begins a block. Its ID derives from its index, so all attempts use the same one.
func (t *thinking) add() *thought {
	block := &thought{id: t.run.Identify("rsn", fmt.Sprintf("%s/%d", t.step, len(t.blocks)))}
	t.blocks = append(t.blocks, block)
	t.ended = false
	return block
}

// begin returns the current block, and the events that open its message; none if it is open. It
// adds a block if there is none, or if the provider has closed the last one. A block that was
// interrupted by text continues under its ID.
func (t *thinking) begin() (*thought, []agui.Event) {
	if len(t.blocks) == 0 || t.ended {
		t.add()
	}
	block := t.blocks[len(t.blocks)-1]
	if t.open {
		return block, nil
	}
	t.open = true
	return block, []agui.Event{&agui.ReasoningStart{MessageID: block.id}, &agui.ReasoningMessageStart{MessageID: block.id}}
}

// tell adds text to the current block. The message opens with its first text, so clients see no
// empty message.
func (t *thinking) tell(delta string) []agui.Event {
	if delta == "" {
		return nil
	}
	block, events := t.begin()
	block.text.WriteString(delta)
	return append(events, &agui.ReasoningMessageContent{MessageID: block.id, Delta: delta})
}

// seal closes the current block with the data that its provider wants back. A block without text
// has no event: it is returned as hidden, and the conversation keeps it for the provider. A block
// without text and data is dropped.
func (t *thinking) seal(end llm.ReasoningEnd) (events []agui.Event, hidden *thought) {
	sealed := prompt.SealReasoning(end.Provider, end.Data)
	if len(t.blocks) == 0 || t.ended {
		if sealed == "" {
			return nil, nil
		}
		hidden = t.add()
		hidden.sealed, t.ended = sealed, true
		return nil, hidden
	}
	block := t.blocks[len(t.blocks)-1]
	block.sealed = sealed
	t.ended = true
	if sealed == "" {
		return t.end(), nil
	}
	value := &agui.ReasoningEncryptedValue{Subtype: agui.EncryptedMessage, EntityID: block.id, EncryptedValue: sealed}
	// A text has interrupted the block and closed its message.
	if !t.open {
		return []agui.Event{value}, nil
	}
	t.open = false
	return []agui.Event{&agui.ReasoningMessageEnd{MessageID: block.id}, value, &agui.ReasoningEnd{MessageID: block.id}}, nil
}

// end returns the events that close the message of the current block; nil = it is not open. The
// block itself stays current.
func (t *thinking) end() []agui.Event {
	if !t.open {
		return nil
	}
	t.open = false
	id := t.blocks[len(t.blocks)-1].id
	return []agui.Event{&agui.ReasoningMessageEnd{MessageID: id}, &agui.ReasoningEnd{MessageID: id}}
}

// message returns the block as a message of the conversation.
func (b *thought) message() agui.Message {
	return agui.Message{ID: b.id, Role: agui.RoleReasoning, Content: agui.TextContent(b.text.String()), EncryptedValue: b.sealed}
}
