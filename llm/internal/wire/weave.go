package wire

import (
	"iter"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

// Place is where a block of reasoning stood in its completion. A message keeps
// text, calls and reasoning apart; providers that sign their reasoning want it
// back where it was, and keep the place in [llm.Reasoning.Data].
type Place struct {
	Text  int `json:"text,omitempty"`  // bytes of text before it
	Calls int `json:"calls,omitempty"` // tool calls before it
}

// Element is a piece of a completion. One of its fields is set.
type Element struct {
	Text  string
	Call  *llm.ToolCall
	Block *llm.Reasoning
}

// Weave puts an assistant message together as it was said. Blocks for which
// place has no answer are left out. A place that the message no longer has
// (a client changed it) means its end.
func Weave(message llm.Message, place func(llm.Reasoning) (Place, bool)) iter.Seq[Element] {
	return func(yield func(Element) bool) {
		w := weaver{text: message.Text(), calls: message.ToolCalls, yield: yield}
		for i, block := range message.Reasoning {
			at, ok := place(block)
			if ok && !(w.until(at) && yield(Element{Block: &message.Reasoning[i]})) {
				return
			}
		}
		w.until(Place{Text: len(w.text), Calls: len(w.calls)})
	}
}

// weaver yields the elements of a message, and knows how far it has come.
type weaver struct {
	text  string
	calls []llm.ToolCall
	said  Place
	yield func(Element) bool
}

// until says what comes before a place: text, then calls, which is the order
// in which models speak.
func (w *weaver) until(at Place) bool {
	for at.Text < len(w.text) && !utf8.RuneStart(w.text[max(at.Text, 0)]) {
		at.Text++
	}
	if end := min(at.Text, len(w.text)); end > w.said.Text {
		piece := w.text[w.said.Text:end]
		w.said.Text = end
		if !w.yield(Element{Text: piece}) {
			return false
		}
	}
	for ; w.said.Calls < min(at.Calls, len(w.calls)); w.said.Calls++ {
		if !w.yield(Element{Call: &w.calls[w.said.Calls]}) {
			return false
		}
	}
	return true
}
