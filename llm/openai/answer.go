package openai

import (
	"bytes"
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer converts the events of one completion to chunks; it is the [wire.Reply] of Chat
// Completions. Each event is a chat.completion.chunk.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text    wire.Mender // joins split characters of content
	refusal wire.Mender // of refusal
	thought wire.Mender // of the visible reasoning

	thinking string // member with the open reasoning block, or ""
	refused  bool   // the model refuses to answer
	finished bool   // a finish reason has arrived
	done     bool   // [DONE] has arrived
}

// newAnswer returns the reply for one completion of req.
func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req}
}

// Over implements [wire.Reply]: [DONE] has arrived.
func (a *answer) Over() bool { return a.done }

// Read implements [wire.Reply]. It reads only the first choice; requests never ask for more.
func (a *answer) Read(event ssestream.Event) error {
	data := bytes.TrimSpace(event.Data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		a.done = true
		return nil
	}
	// An event of type error, or any event with an error member, is a fault. An error of null is
	// none.
	if event.Type == "error" {
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	}
	c, ok := decodeChunk(data)
	if !ok {
		return wire.Malformed("an event of the stream is not a JSON object")
	}
	if wire.IsPresent(c.Error) {
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	}
	a.account(c)
	for _, choice := range c.Choices {
		if choice.Index.value != 0 {
			continue
		}
		if err := a.choice(choice); err != nil {
			return err
		}
	}
	return nil
}

// account records model and usage. OpenAI sends usage in the last chunk; some servers send it in
// each, with growing counts.
func (a *answer) account(c chunk) {
	a.SetModel(c.Model)
	if c.Usage.isPresent {
		a.Finish.Usage = c.Usage.value.counts()
		if !a.finished {
			a.ReportUsage(a.Finish.Usage)
		}
	}
}

// choice processes a choice: its reasoning, text, tool calls and finish reason.
func (a *answer) choice(c choice) error {
	a.reason(c.Delta)
	a.addText(&a.text, c.Delta.Content)
	a.addRefusal(c.Delta.Refusal)
	for i, piece := range c.Delta.ToolCalls {
		if err := a.call(i, piece); err != nil {
			return err
		}
	}
	if reason, ok := wire.Unquote(string(c.FinishReason)); ok && reason != "" {
		a.finished = true
		a.Finish.Reason = finishReason(reason)
	}
	return a.CheckSize()
}

// addRefusal appends a JSON string literal to the refusal. A refusal is text for the user, so it is
// emitted like content.
func (a *answer) addRefusal(literal json.RawMessage) {
	a.addText(&a.refusal, literal)
	a.refused = a.refused || hasText(literal)
}

// hasText reports whether a JSON literal is a string that is not empty.
func hasText(literal json.RawMessage) bool {
	text, _ := wire.Unquote(string(literal))
	return text != ""
}

// addText appends a JSON string literal to the text, and ends open reasoning.
func (a *answer) addText(mender *wire.Mender, literal json.RawMessage) {
	piece := a.Unquote(literal)
	if text := mender.Mend(piece); text != "" {
		a.endReasoning()
		a.Emit(llm.TextDelta{Text: text})
	}
}

// reasoningMembers are the members of a delta in which servers send reasoning; the API itself
// defines none. Some servers send both, with the same text.
var reasoningMembers = []string{"reasoning_content", "reasoning"}

// reason emits the reasoning of a delta from the first member that has some.
func (a *answer) reason(d delta) {
	for i, literal := range []json.RawMessage{d.ReasoningContent, d.Reasoning} { // as reasoningMembers
		piece := a.Unquote(literal)
		if piece == "" {
			continue
		}
		a.thinking = reasoningMembers[i]
		if text := a.thought.Mend(piece); text != "" {
			a.Emit(llm.ReasoningDelta{Text: text})
		}
		return
	}
}

// endReasoning ends the open reasoning block. Its data is the name of the member, as a JSON string:
// the server expects the text back in the same member, see reasoningFields.
func (a *answer) endReasoning() {
	if a.thinking == "" {
		return
	}
	if rest := a.thought.Flush(); rest != "" {
		a.Emit(llm.ReasoningDelta{Text: rest})
	}
	name, _ := json.Marshal(a.thinking)
	a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: name})
	a.thinking = ""
}

// call processes a fragment of a tool call. A server without indices numbers calls by their
// position in the event.
func (a *answer) call(position int, piece callDelta) error {
	slot := piece.Index.value
	// The index is missing in events of some compatible servers.
	if !piece.Index.isPresent {
		slot = int64(position)
	}
	id := a.Unquote(piece.ID)
	name := a.Unquote(piece.Function.Name)
	arguments := a.Unquote(piece.Function.Arguments)
	a.endReasoning()
	return a.AddCall(slot, id, name, arguments)
}

// End implements [wire.Reply]. A completion with a finish reason is complete, even if the usage or
// [DONE] that should follow is missing.
func (a *answer) End(err error) error {
	if !a.finished {
		return wire.Truncated(err)
	}
	a.endReasoning()
	if rest := a.text.Flush() + a.refusal.Flush(); rest != "" {
		a.Emit(llm.TextDelta{Text: rest})
	}
	a.Finish.Reason = reasonOfRefusal(a.refused, a.Finish.Reason, a.Calls.Len())
	return a.Close()
}

// reasonOfRefusal returns the finish reason of a completion whose model may have refused to answer. The
// API reports a regular stop for a refusal.
func reasonOfRefusal(refused bool, reason llm.FinishReason, calls int) llm.FinishReason {
	if refused && reason == llm.FinishStop && calls == 0 {
		return llm.FinishContentFilter
	}
	return reason
}

// finishReason maps the API's finish_reason.
func finishReason(reason string) llm.FinishReason {
	switch reason {
	case "stop":
		return llm.FinishStop
	case "tool_calls", "function_call":
		return llm.FinishToolCalls
	case "length":
		return llm.FinishLength
	case "content_filter":
		return llm.FinishContentFilter
	default:
		return llm.FinishOther
	}
}
