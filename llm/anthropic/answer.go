package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer turns the events of one completion into chunks.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text     wire.Mender
	slots    map[int64]int64 // the numbers of the calls, by the index of their block
	called   int64           // calls that began
	thinking *thinking       // the open block, or nil

	said    int // bytes of text told
	usage   usage
	stopped bool // the stop reason has come
	done    bool // message_stop has come
}

// thinking is a block of thinking that is being written.
type thinking struct {
	index int64
	text  wire.Mender
	seal  seal
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req, slots: map[int64]int64{}}
}

// Over reports whether message_stop has come.
func (a *answer) Over() bool { return a.done }

// Read takes one event.
func (a *answer) Read(raw ssestream.Event) error {
	data := bytes.TrimSpace(raw.Data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return wire.Malformed("an event of the stream is not what the API describes")
	}
	var err error
	switch e.Type {
	case "error":
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	case "message_start":
		a.start(e.Message)
	case "content_block_start":
		err = a.open(e.Index, e.ContentBlock)
	case "content_block_delta":
		err = a.add(e.Index, e.Delta)
	case "content_block_stop":
		a.closeBlock(e.Index)
	case "message_delta":
		a.stop(e)
	case "message_stop":
		a.done = true
	}
	if err == nil {
		err = a.CheckSize()
	}
	return err
}

func (a *answer) start(message opened) {
	a.SetModel(message.Model)
	a.usage.note(message.Usage)
	if reported := a.usage.total(); reported.Input != nil {
		a.ReportUsage(reported)
	}
}

// open begins a block. Blocks of types that we do not know pass by.
func (a *answer) open(index int64, b block) error {
	switch b.Type {
	case "text":
		a.addText(b.Text)
	case "thinking":
		a.endThinking()
		a.thinking = &thinking{index: index, seal: seal{Place: a.place()}}
		a.think(b.Thinking)
		a.sign(b.Signature)
	case "redacted_thinking":
		a.endThinking()
		a.endRedacted(a.Unquote(b.Data))
	case "tool_use":
		return a.call(index, b)
	}
	return nil
}

func (a *answer) add(index int64, d delta) error {
	switch d.Type {
	case "text_delta":
		a.addText(d.Text)
	case "thinking_delta":
		a.think(d.Thinking)
	case "signature_delta":
		a.sign(d.Signature)
	case "input_json_delta":
		return a.argue(index, a.Unquote(d.PartialJSON))
	}
	return nil
}

func (a *answer) closeBlock(index int64) {
	if a.thinking != nil && a.thinking.index == index {
		a.endThinking()
	}
}

// stop notes the end of the message, which message_stop confirms.
func (a *answer) stop(e event) {
	a.usage.note(e.Usage)
	if e.Delta.StopReason != "" {
		a.stopped = true
		a.Finish.Reason = finishReason(e.Delta.StopReason)
	}
}

func (a *answer) addText(literal json.RawMessage) {
	a.tell(a.text.Mend(a.Unquote(literal)))
}

func (a *answer) tell(text string) {
	if text == "" {
		return
	}
	a.endThinking()
	a.said += len(text)
	a.Emit(llm.TextDelta{Text: text})
}

func (a *answer) think(literal json.RawMessage) {
	piece := a.Unquote(literal)
	if a.thinking == nil {
		return
	}
	if text := a.thinking.text.Mend(piece); text != "" {
		a.Emit(llm.ReasoningDelta{Text: text})
	}
}

func (a *answer) sign(literal json.RawMessage) {
	piece := a.Unquote(literal)
	if a.thinking != nil {
		a.thinking.seal.Signature += piece
	}
}

// endThinking closes the open block. Without a signature, which servers other
// than Anthropic's leave out, nothing of it need be sent back.
func (a *answer) endThinking() {
	if a.thinking == nil {
		return
	}
	if rest := a.thinking.text.Flush(); rest != "" {
		a.Emit(llm.ReasoningDelta{Text: rest})
	}
	a.endReasoning(a.thinking.seal, a.thinking.seal.Signature != "")
	a.thinking = nil
}

func (a *answer) endReasoning(s seal, wanted bool) {
	end := llm.ReasoningEnd{Provider: a.model.config.Provider}
	if wanted {
		end.Data, _ = json.Marshal(s) // strings and numbers always have a JSON form
	}
	a.Emit(end)
}

func (a *answer) endRedacted(data string) {
	if data != "" {
		a.endReasoning(seal{Redacted: data, Place: a.place()}, true)
	}
}

// place returns where the completion is now.
func (a *answer) place() wire.Place {
	return wire.Place{Text: a.said, Calls: a.Calls.Len()}
}

func (a *answer) call(index int64, b block) error {
	a.endThinking()
	slot := a.called
	a.called++
	a.slots[index] = slot
	err := a.AddCall(slot, a.Unquote(b.ID), a.Unquote(b.Name), "")
	if input := string(b.Input); err == nil && input != "" && input != "{}" && input != "null" {
		return a.argue(index, input) // whole, by servers that do not stream them
	}
	return err
}

func (a *answer) argue(index int64, arguments string) error {
	slot, ok := a.slots[index]
	if !ok {
		return wire.Malformed("arguments of a tool call that did not begin")
	}
	a.Received(len(arguments))
	return a.AddCall(slot, "", "", arguments)
}

// End closes the completion at the end of the stream; err is why it ended, if that was not regular.
// A completion with its stop reason is whole.
func (a *answer) End(err error) error {
	if !a.stopped {
		return wire.Truncated(err)
	}
	a.endThinking()
	a.tell(a.text.Flush())
	a.Finish.Usage = a.usage.total()
	return a.Close()
}

func finishReason(reason string) llm.FinishReason {
	switch reason {
	case "end_turn", "stop_sequence":
		return llm.FinishStop
	case "tool_use":
		return llm.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "refusal":
		return llm.FinishContentFilter
	default: // pause_turn too: it is about tools of the server's, of which it was offered none
		return llm.FinishOther
	}
}
