package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer converts the events of one completion to chunks; it is the [wire.Reply] of
// streamGenerateContent. Each event is a GenerateContentResponse whose parts continue the answer.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text    wire.Mender // joins split characters of the text
	thought wire.Mender // joins split characters of the visible reasoning
	called  int64       // calls started so far

	textBytes int  // bytes of text emitted, see place
	finished  bool // a finish reason has arrived
}

// newAnswer returns the reply for one completion of req.
func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req}
}

// Over implements [wire.Reply]. It is always false: the API has no final event, the body just ends.
func (a *answer) Over() bool { return false }

// Read implements [wire.Reply]. data is the data of one server-sent event. Only the first candidate
// is read; requests never ask for more.
func (a *answer) Read(data []byte) error {
	data = bytes.TrimSpace(data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return wire.Malformed("an event of the stream does not fit the API")
	}
	if wire.IsPresent(e.Error) {
		fault, _ := parseFault(data)
		return a.model.api.Failed(a.req, fault)
	}
	a.account(e)
	for _, candidate := range e.Candidates {
		if candidate.Index != 0 {
			continue
		}
		if err := a.candidate(candidate); err != nil {
			return err
		}
	}
	if e.Feedback.BlockReason != "" && !a.finished {
		return a.model.blocked(a.req, e)
	}
	return nil
}

// account records model and usage, which any event can contain. The counts are cumulative.
func (a *answer) account(e event) {
	a.SetModel(e.ModelVersion)
	if e.Usage != nil {
		a.Finish.Usage = usage(*e.Usage)
		if !a.finished && a.Finish.Usage.Input != nil {
			a.ReportUsage(a.Finish.Usage)
		}
	}
}

// candidate processes a candidate: its parts, and its finish reason if it has one.
func (a *answer) candidate(c candidate) error {
	for _, p := range c.Content.Parts {
		if err := a.piece(p); err != nil {
			return err
		}
		if err := a.CheckSize(); err != nil {
			return err
		}
	}
	if c.FinishReason == "" {
		return nil
	}
	if garbled[c.FinishReason] {
		return wire.Malformed("the model wrote an invalid tool call")
	}
	a.finished = true
	a.Finish.Reason = finishReason(c.FinishReason)
	return nil
}

// piece processes one part: a function call, a thought or text. A signature applies to the part
// that carries it, so the seal records where that part begins.
func (a *answer) piece(p piece) error {
	signature := a.Unquote(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		a.seal(seal{Signature: signature, On: onCall, ItemPosition: a.position()})
		return a.call(a.Unquote(p.FunctionCall.ID), a.Unquote(p.FunctionCall.Name), p.FunctionCall.Args)
	case p.Thought:
		a.think(a.thought.Mend(a.Unquote(p.Text)))
		a.seal(seal{Signature: signature, On: onThought, ItemPosition: a.position()})
	default:
		position := a.position()
		a.addText(a.text.Mend(a.Unquote(p.Text)))
		a.seal(seal{Signature: signature, On: onText, Length: a.textBytes - position.Text, ItemPosition: position})
	}
	return nil
}

// addText emits text. Text ends the visible reasoning before it.
func (a *answer) addText(text string) {
	if text == "" {
		return
	}
	a.think(a.thought.Flush())
	a.textBytes += len(text)
	a.Emit(llm.TextDelta{Text: text})
}

// think emits visible reasoning.
func (a *answer) think(text string) {
	if text != "" {
		a.Emit(llm.ReasoningDelta{Text: text})
	}
}

// seal emits a ReasoningEnd that carries the signature of a part. It ignores parts without a
// signature.
func (a *answer) seal(s seal) {
	if s.Signature == "" {
		return
	}
	a.think(a.thought.Flush())
	data, _ := json.Marshal(s) // strings and numbers cannot fail
	a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: data})
}

// position returns the current position in the completion.
func (a *answer) position() wire.ItemPosition {
	return wire.ItemPosition{Text: a.textBytes, Calls: a.Calls.Len()}
}

// call adds a complete tool call. The API numbers calls by their order only.
func (a *answer) call(id, name string, args json.RawMessage) error {
	if !wire.IsPresent(args) {
		args = json.RawMessage(`{}`)
	}
	a.Received(len(args))
	a.think(a.thought.Flush())
	slot := a.called
	a.called++
	return a.AddCall(slot, id, name, string(args))
}

// End implements [wire.Reply]. Only a finish reason shows that the completion is complete.
func (a *answer) End(err error) error {
	if !a.finished {
		return wire.Truncated(err)
	}
	a.think(a.thought.Flush())
	a.addText(a.text.Flush())
	return a.Close()
}

// garbled contains the finish reasons of a tool call that the API could not parse and did not
// deliver. They become retryable errors, because another attempt can succeed.
var garbled = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "MALFORMED_RESPONSE": true, "UNEXPECTED_TOOL_CALL": true}

// finishReason maps the API's finishReason. The API reports STOP with and without tool calls;
// [wire.Completion.Close] distinguishes them.
func finishReason(reason string) llm.FinishReason {
	switch reason {
	case "STOP", "FUNCTION_CALL": // FUNCTION_CALL: compatible servers
		return llm.FinishStop
	case "MAX_TOKENS":
		return llm.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.FinishContentFilter
	default:
		return llm.FinishOther
	}
}

// usage converts the API's counts. candidatesTokenCount excludes thoughts, while [llm.Usage.Output]
// includes them.
func usage(c counts) llm.Usage {
	u := llm.Usage{
		Input: positive(c.Prompt), Output: positive(c.Candidates), Total: positive(c.Total),
		Reasoning: positive(c.Thoughts), CachedInput: positive(c.Cached),
	}
	if u.Reasoning != nil {
		output := *u.Reasoning
		if u.Output != nil {
			output += *u.Output
		}
		u.Output = &output
	}
	return u
}

// positive returns n, or nil if n is negative.
func positive(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}
