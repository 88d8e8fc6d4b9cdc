package wire

import (
	"iter"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

// ItemPosition is the position of a reasoning block in its completion. [llm.Message] stores text,
// calls and reasoning separately, so their order is lost. Providers with signed reasoning require
// each block at its original position, and store the ItemPosition in [llm.Reasoning.Data].
type ItemPosition struct {
	Text  int `json:"text,omitempty"`  // bytes of text before the block
	Calls int `json:"calls,omitempty"` // tool calls before the block
}

// Element is a piece of a completion. Exactly one field is set.
type Element struct {
	Text  string
	Call  *llm.ToolCall
	Block *llm.Reasoning
}

// Weave yields the elements of an assistant message in their original order. positionOf returns the
// position of a block; ok = false omits the block. If a client has shortened the message, a
// position beyond its end means the end.
func Weave(message llm.Message, positionOf func(llm.Reasoning) (ItemPosition, bool)) iter.Seq[Element] {
	return func(yield func(Element) bool) {
		w := weaver{text: message.Text(), calls: message.ToolCalls, yield: yield}
		for i, block := range message.Reasoning {
			position, ok := positionOf(block)
			if ok && !(w.yieldUntil(position) && yield(Element{Block: &message.Reasoning[i]})) {
				return
			}
		}
		w.yieldUntil(ItemPosition{Text: len(w.text), Calls: len(w.calls)})
	}
}

// weaver yields the elements of a message up to given positions.
type weaver struct {
	text    string
	calls   []llm.ToolCall
	yielded ItemPosition // position up to which the elements have been yielded
	yield   func(Element) bool
}

// yieldUntil yields the elements before a position: text first, then calls, the order in which
// models produce them. It returns false if the consumer broke out of the range.
func (w *weaver) yieldUntil(position ItemPosition) bool {
	// A client may have changed the text: move the position to the start of a character.
	for position.Text < len(w.text) && !utf8.RuneStart(w.text[max(position.Text, 0)]) {
		position.Text++
	}
	if end := min(position.Text, len(w.text)); end > w.yielded.Text {
		piece := w.text[w.yielded.Text:end]
		w.yielded.Text = end
		if !w.yield(Element{Text: piece}) {
			return false
		}
	}
	for ; w.yielded.Calls < min(position.Calls, len(w.calls)); w.yielded.Calls++ {
		if !w.yield(Element{Call: &w.calls[w.yielded.Calls]}) {
			return false
		}
	}
	return true
}
