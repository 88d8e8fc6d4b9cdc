package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer converts the events of one completion to chunks; it is the [wire.Reply] of the Messages
// API. The API sends content in blocks: content_block_start, deltas, content_block_stop. Blocks are
// identified by index.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text     wire.Mender     // joins split characters of the text blocks
	slots    map[int64]int64 // call number, by the index of its block
	called   int64           // calls started so far
	thinking *thinking       // the open thinking block, or nil

	textBytes int // bytes of text emitted, see place
	usage     usage
	stopped   bool // a stop reason has arrived
	done      bool // message_stop has arrived
}

// thinking is an open thinking block. Its seal is complete when the block ends.
type thinking struct {
	index int64       // of the block in the event stream
	text  wire.Mender // joins split characters of the visible thinking
	seal  seal        // signature and position, for [llm.Reasoning]
}

// newAnswer returns the reply for one completion of req.
func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req, slots: map[int64]int64{}}
}

// Over implements [wire.Reply]: message_stop has arrived.
func (a *answer) Over() bool { return a.done }

// Read implements [wire.Reply]. Unknown event types, such as ping, are ignored, as the API's
// versioning policy requires.
func (a *answer) Read(raw ssestream.Event) error {
	data := bytes.TrimSpace(raw.Data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return wire.Malformed("an event of the stream does not fit the API")
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

// start processes message_start, which carries the model and the input tokens.
func (a *answer) start(message opened) {
	a.SetModel(message.Model)
	a.usage.note(message.Usage)
	if reported := a.usage.total(); reported.Input != nil {
		a.ReportUsage(reported)
	}
}

// open processes content_block_start. It ignores blocks of unknown types. A start event can already
// contain content.
func (a *answer) open(index int64, b block) error {
	switch b.Type {
	case "text":
		a.addText(b.Text)
	case "thinking":
		a.endThinking()
		a.thinking = &thinking{index: index, seal: seal{ItemPosition: a.position()}}
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

// add processes content_block_delta.
func (a *answer) add(index int64, d delta) error {
	switch d.Type {
	case "text_delta":
		a.addText(d.Text)
	case "thinking_delta":
		a.think(d.Thinking)
	case "signature_delta":
		a.sign(d.Signature)
	case "input_json_delta":
		return a.addArguments(index, a.Unquote(d.PartialJSON))
	}
	return nil
}

// closeBlock processes content_block_stop. Only thinking blocks have an end in the chunk stream.
func (a *answer) closeBlock(index int64) {
	if a.thinking != nil && a.thinking.index == index {
		a.endThinking()
	}
}

// stop processes message_delta. It records the stop reason, but the completion ends only with
// message_stop.
func (a *answer) stop(e event) {
	a.usage.note(e.Usage)
	if e.Delta.StopReason != "" {
		a.stopped = true
		a.Finish.Reason = finishReason(e.Delta.StopReason)
	}
}

// addText appends a JSON string literal to the text.
func (a *answer) addText(literal json.RawMessage) {
	a.emitText(a.text.Mend(a.Unquote(literal)))
}

// emitText emits text. Text ends an open thinking block.
func (a *answer) emitText(text string) {
	if text == "" {
		return
	}
	a.endThinking()
	a.textBytes += len(text)
	a.Emit(llm.TextDelta{Text: text})
}

// think appends a JSON string literal to the open thinking block. Without an open block the literal
// still counts as received.
func (a *answer) think(literal json.RawMessage) {
	piece := a.Unquote(literal)
	if a.thinking == nil {
		return
	}
	if text := a.thinking.text.Mend(piece); text != "" {
		a.Emit(llm.ReasoningDelta{Text: text})
	}
}

// sign appends a JSON string literal to the signature of the open thinking block.
func (a *answer) sign(literal json.RawMessage) {
	piece := a.Unquote(literal)
	if a.thinking != nil {
		a.thinking.seal.Signature += piece
	}
}

// endThinking ends the open thinking block, if any. Only a signed block has to be sent back;
// compatible servers omit the signature.
func (a *answer) endThinking() {
	if a.thinking == nil {
		return
	}
	if rest := a.thinking.text.Flush(); rest != "" {
		a.Emit(llm.ReasoningDelta{Text: rest})
	}
	if a.thinking.seal.Signature == "" {
		a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider})
	} else {
		a.endSealed(a.thinking.seal)
	}
	a.thinking = nil
}

// endSealed emits the end of a reasoning block that has to be sent back, with its seal.
func (a *answer) endSealed(s seal) {
	data, _ := json.Marshal(s) // strings and numbers cannot fail
	a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: data})
}

// endRedacted emits a redacted_thinking block, whose content is encrypted.
func (a *answer) endRedacted(data string) {
	if data != "" {
		a.endSealed(seal{Redacted: data, ItemPosition: a.position()})
	}
}

// position returns the current position in the completion.
func (a *answer) position() wire.ItemPosition {
	return wire.ItemPosition{Text: a.textBytes, Calls: a.Calls.Len()}
}

// call starts a tool call. Anthropic streams the arguments in deltas; some compatible servers send
// them complete in the start event. An input of {} in the start event is a placeholder.
func (a *answer) call(index int64, b block) error {
	a.endThinking()
	slot := a.called
	a.called++
	a.slots[index] = slot
	err := a.AddCall(slot, a.Unquote(b.ID), a.Unquote(b.Name), "")
	if input := string(b.Input); err == nil && input != "" && input != "{}" && input != "null" {
		return a.addArguments(index, input)
	}
	return err
}

// addArguments appends to the arguments of the call in the block with that index.
func (a *answer) addArguments(index int64, arguments string) error {
	slot, ok := a.slots[index]
	if !ok {
		return wire.Malformed("the provider sent arguments of a tool call before its start")
	}
	a.Received(len(arguments))
	return a.AddCall(slot, "", "", arguments)
}

// End implements [wire.Reply]. A completion with a stop reason is complete, even if message_stop is
// missing.
func (a *answer) End(err error) error {
	if !a.stopped {
		return wire.Truncated(err)
	}
	a.endThinking()
	a.emitText(a.text.Flush())
	a.Finish.Usage = a.usage.total()
	return a.Close()
}

// finishReason maps the API's stop_reason.
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
	default: // including pause_turn, which only server tools cause; the package requests none
		return llm.FinishOther
	}
}
