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
	blocks  []*thought
	isOpen  bool
	isEnded bool
}

// thought is one block of reasoning. sealed is the encrypted value of SealReasoning; "" = the
// provider wants nothing back.
type thought struct {
	id     string
	text   strings.Builder
	sealed string
}

// addBlock begins a block. Its ID derives from its index, so all attempts use the same one.
func (t *thinking) addBlock() *thought {
	block := &thought{id: t.run.Identify("rsn", fmt.Sprintf("%s/%d", t.step, len(t.blocks)))}
	t.blocks = append(t.blocks, block)
	t.isEnded = false
	return block
}

// begin returns the current block, and the events that open its message; none if it is open. It
// adds a block if there is none, or if the provider has closed the last one. A block that was
// interrupted by text continues under its ID.
func (t *thinking) begin() (*thought, []agui.Event) {
	if len(t.blocks) == 0 || t.isEnded {
		t.addBlock()
	}
	block := t.blocks[len(t.blocks)-1]
	if t.isOpen {
		return block, nil
	}
	t.isOpen = true
	return block, []agui.Event{&agui.ReasoningStart{MessageID: block.id}, &agui.ReasoningMessageStart{MessageID: block.id}}
}

// addText adds text to the current block. The message opens with its first text, so clients see no
// empty message.
func (t *thinking) addText(delta string) []agui.Event {
	if delta == "" {
		return nil
	}
	block, events := t.begin()
	block.text.WriteString(delta)
	return append(events, &agui.ReasoningMessageContent{MessageID: block.id, Delta: delta})
}

// endBlock closes the current block with the data that its provider wants back. A block without
// text has no event: it is returned as hidden, and the conversation keeps it for the provider. A
// block without text and data is dropped.
func (t *thinking) endBlock(end llm.ReasoningEnd) (events []agui.Event, hidden *thought) {
	sealed := prompt.SealReasoning(end.Provider, end.Data)
	if len(t.blocks) == 0 || t.isEnded {
		if sealed == "" {
			return nil, nil
		}
		hidden = t.addBlock()
		hidden.sealed, t.isEnded = sealed, true
		return nil, hidden
	}
	block := t.blocks[len(t.blocks)-1]
	block.sealed = sealed
	t.isEnded = true
	if sealed == "" {
		return t.closeMessage(), nil
	}
	value := &agui.ReasoningEncryptedValue{Subtype: agui.EncryptedMessage, EntityID: block.id, EncryptedValue: sealed}
	// A text has interrupted the block and closed its message.
	if !t.isOpen {
		return []agui.Event{value}, nil
	}
	t.isOpen = false
	return []agui.Event{&agui.ReasoningMessageEnd{MessageID: block.id}, value, &agui.ReasoningEnd{MessageID: block.id}}, nil
}

// closeMessage returns the events that close the message of the current block; nil = it is not
// open. The block itself stays current.
func (t *thinking) closeMessage() []agui.Event {
	if !t.isOpen {
		return nil
	}
	t.isOpen = false
	id := t.blocks[len(t.blocks)-1].id
	return []agui.Event{&agui.ReasoningMessageEnd{MessageID: id}, &agui.ReasoningEnd{MessageID: id}}
}

// message returns the block as a message of the conversation.
func (t *thought) message() agui.Message {
	return agui.Message{ID: t.id, Role: agui.RoleReasoning, Content: agui.TextContent(t.text.String()), EncryptedValue: t.sealed}
}
