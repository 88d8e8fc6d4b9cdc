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
	model *Model
	req   *llm.Request
	out   []llm.Chunk // made, not yet taken

	text     wire.Mender
	calls    *wire.Calls
	slots    map[int64]int64 // the numbers of the calls, by the index of their block
	called   int64           // calls that began
	thinking *thinking       // the open block, or nil

	said    int // bytes of text told
	content int // bytes received
	usage   usage
	finish  llm.Finish
	over    bool // the stop reason has come
	done    bool // message_stop has come
}

// thinking is a block of thinking that is being written.
type thinking struct {
	index int64
	text  wire.Mender
	seal  seal
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{
		model:  m,
		req:    req,
		calls:  wire.NewCalls(req, m.limits.ToolCalls),
		slots:  map[int64]int64{},
		finish: llm.Finish{Model: req.Model, Provider: m.config.Provider},
	}
}

// take returns the chunks made since the last take. They are valid until the
// next read.
func (a *answer) take() []llm.Chunk {
	chunks := a.out
	a.out = a.out[:0]
	return chunks
}

// read takes one event.
func (a *answer) read(raw ssestream.Event) error {
	data := bytes.TrimSpace(raw.Data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "an event of the stream is not what the API describes"}
	}
	var err error
	switch e.Type {
	case "error":
		fault, _ := parseFault(data)
		return a.model.fault(a.req, fault)
	case "message_start":
		a.start(e.Message)
	case "content_block_start":
		err = a.open(e.Index, e.ContentBlock)
	case "content_block_delta":
		err = a.add(e.Index, e.Delta)
	case "content_block_stop":
		a.close(e.Index)
	case "message_delta":
		a.stop(e)
	case "message_stop":
		a.done = true
	}
	if err == nil && a.content > a.model.limits.ContentBytes {
		return wire.TooLarge("the completion has more than %d bytes", a.model.limits.ContentBytes)
	}
	return err
}

func (a *answer) start(message opened) {
	if model, ok := wire.Unquote(string(message.Model)); ok && model != "" {
		a.finish.Model = fixUTF8(model)
	}
	a.usage.note(message.Usage)
	if reported := a.usage.total(); reported.Input != nil {
		a.out = append(a.out, llm.UsageReport{Usage: reported, Model: a.finish.Model, Provider: a.finish.Provider})
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
		a.endRedacted(a.unquote(b.Data))
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
		return a.argue(index, a.unquote(d.PartialJSON))
	}
	return nil
}

func (a *answer) close(index int64) {
	if a.thinking != nil && a.thinking.index == index {
		a.endThinking()
	}
}

// stop notes the end of the message, which message_stop confirms.
func (a *answer) stop(e event) {
	a.usage.note(e.Usage)
	if e.Delta.StopReason != "" {
		a.over = true
		a.finish.Reason = finishReason(e.Delta.StopReason)
	}
}

func (a *answer) addText(literal json.RawMessage) {
	a.tell(a.text.Mend(a.unquote(literal)))
}

func (a *answer) tell(text string) {
	if text == "" {
		return
	}
	a.endThinking()
	a.said += len(text)
	a.out = append(a.out, llm.TextDelta{Text: text})
}

func (a *answer) think(literal json.RawMessage) {
	piece := a.unquote(literal)
	if a.thinking == nil {
		return
	}
	if text := a.thinking.text.Mend(piece); text != "" {
		a.out = append(a.out, llm.ReasoningDelta{Text: text})
	}
}

func (a *answer) sign(literal json.RawMessage) {
	piece := a.unquote(literal)
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
		a.out = append(a.out, llm.ReasoningDelta{Text: rest})
	}
	a.endReasoning(a.thinking.seal, a.thinking.seal.Signature != "")
	a.thinking = nil
}

func (a *answer) endReasoning(s seal, wanted bool) {
	end := llm.ReasoningEnd{Provider: a.model.config.Provider}
	if wanted {
		end.Data, _ = json.Marshal(s) // strings and numbers always have a JSON form
	}
	a.out = append(a.out, end)
}

func (a *answer) endRedacted(data string) {
	if data != "" {
		a.endReasoning(seal{Redacted: data, Place: a.place()}, true)
	}
}

// place returns where the completion is now.
func (a *answer) place() wire.Place {
	return wire.Place{Text: a.said, Calls: a.calls.Len()}
}

func (a *answer) call(index int64, b block) error {
	a.endThinking()
	slot := a.called
	a.called++
	a.slots[index] = slot
	var err error
	a.out, err = a.calls.Add(a.out, slot, a.unquote(b.ID), a.unquote(b.Name), "")
	if input := string(b.Input); err == nil && input != "" && input != "{}" && input != "null" {
		return a.argue(index, input) // whole, by servers that do not stream them
	}
	return err
}

func (a *answer) argue(index int64, arguments string) error {
	slot, ok := a.slots[index]
	if !ok {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "arguments of a tool call that did not begin"}
	}
	a.content += len(arguments)
	var err error
	a.out, err = a.calls.Add(a.out, slot, "", "", arguments)
	return err
}

// unquote returns the string in a literal, which counts as content.
func (a *answer) unquote(literal json.RawMessage) string {
	s, _ := wire.Unquote(string(literal))
	a.content += len(s)
	return s
}

// end closes the completion when the stream is at its end; err is why it
// ended, if that was not regular. A completion that has its stop reason is
// whole.
func (a *answer) end(err error) error {
	if !a.over {
		return wire.Truncated(err)
	}
	if a.finish.Reason == llm.FinishStop && a.calls.Len() > 0 {
		a.finish.Reason = llm.FinishToolCalls
	}
	a.endThinking()
	a.tell(a.text.Flush())
	whole := a.finish.Reason == llm.FinishToolCalls || a.finish.Reason == llm.FinishStop
	a.out, err = a.calls.Finish(a.out, whole)
	if err != nil {
		return err
	}
	a.finish.Usage = a.usage.total()
	a.out = append(a.out, a.finish)
	return nil
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

func fixUTF8(s string) string {
	var m wire.Mender
	return m.Mend(s) + m.Flush()
}
