package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer turns the events of one completion into chunks.
type answer struct {
	model *Model
	req   *llm.Request
	out   []llm.Chunk // made, not yet taken

	text    wire.Mender
	thought wire.Mender
	calls   *wire.Calls
	called  int64 // calls that began

	said    int // bytes of text told
	content int // bytes received
	finish  llm.Finish
	over    bool // the finish reason has come
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{
		model:  m,
		req:    req,
		calls:  wire.NewCalls(req, m.limits.ToolCalls),
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

// read takes the data of one event.
func (a *answer) read(data []byte) error {
	data = bytes.TrimSpace(data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "an event of the stream is not what the API describes"}
	}
	if present(e.Error) {
		fault, _ := parseFault(data)
		return a.model.fault(a.req, fault)
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
	if e.Feedback.BlockReason != "" && !a.over {
		return a.model.blocked(a.req, e)
	}
	return nil
}

// account notes what the last chunk is to report. It may come in any event; the
// counts grow.
func (a *answer) account(e event) {
	if model, ok := wire.Unquote(string(e.ModelVersion)); ok && model != "" {
		a.finish.Model = fixUTF8(model)
	}
	if e.Usage != nil {
		a.finish.Usage = usage(*e.Usage)
		if !a.over && a.finish.Usage.Input != nil {
			a.out = append(a.out, llm.UsageReport{Usage: a.finish.Usage, Model: a.finish.Model, Provider: a.finish.Provider})
		}
	}
}

func (a *answer) candidate(c candidate) error {
	for _, p := range c.Content.Parts {
		if err := a.piece(p); err != nil {
			return err
		}
		if a.content > a.model.limits.ContentBytes {
			return wire.TooLarge("the completion has more than %d bytes", a.model.limits.ContentBytes)
		}
	}
	if c.FinishReason == "" {
		return nil
	}
	if garbled[c.FinishReason] {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "the model wrote a tool call that the provider cannot read"}
	}
	a.over = true
	a.finish.Reason = finishReason(c.FinishReason)
	return nil
}

func (a *answer) piece(p piece) error {
	signature := a.unquote(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		a.seal(seal{Signature: signature, On: onCall, Place: a.place()})
		return a.call(a.unquote(p.FunctionCall.ID), a.unquote(p.FunctionCall.Name), p.FunctionCall.Args)
	case p.Thought:
		a.think(a.thought.Mend(a.unquote(p.Text)))
		a.seal(seal{Signature: signature, On: onThought, Place: a.place()})
	default:
		before := a.place()
		a.addText(a.text.Mend(a.unquote(p.Text)))
		a.seal(seal{Signature: signature, On: onText, Length: a.said - before.Text, Place: before})
	}
	return nil
}

func (a *answer) addText(text string) {
	if text == "" {
		return
	}
	a.think(a.thought.Flush())
	a.said += len(text)
	a.out = append(a.out, llm.TextDelta{Text: text})
}

func (a *answer) think(text string) {
	if text != "" {
		a.out = append(a.out, llm.ReasoningDelta{Text: text})
	}
}

// seal closes the thinking before a part that is signed.
func (a *answer) seal(s seal) {
	if s.Signature == "" {
		return
	}
	a.think(a.thought.Flush())
	data, _ := json.Marshal(s) // strings and numbers always have a JSON form
	a.out = append(a.out, llm.ReasoningEnd{Provider: a.model.config.Provider, Data: data})
}

// place returns where the completion is now.
func (a *answer) place() wire.Place {
	return wire.Place{Text: a.said, Calls: a.calls.Len()}
}

func (a *answer) call(id, name string, args json.RawMessage) error {
	if !present(args) {
		args = json.RawMessage(`{}`)
	}
	a.content += len(args)
	a.think(a.thought.Flush())
	slot := a.called
	a.called++
	var err error
	a.out, err = a.calls.Add(a.out, slot, id, name, string(args))
	return err
}

// unquote returns the string in a literal, which counts as content.
func (a *answer) unquote(literal json.RawMessage) string {
	s, _ := wire.Unquote(string(literal))
	a.content += len(s)
	return s
}

// end closes the completion when the stream is at its end; err is why it
// ended, if that was not regular. There is no mark of the end but the finish
// reason.
func (a *answer) end(err error) error {
	if !a.over {
		return wire.Truncated(err)
	}
	if a.finish.Reason == llm.FinishStop && a.called > 0 {
		a.finish.Reason = llm.FinishToolCalls
	}
	a.think(a.thought.Flush())
	a.addText(a.text.Flush())
	whole := a.finish.Reason == llm.FinishToolCalls || a.finish.Reason == llm.FinishStop
	a.out, err = a.calls.Finish(a.out, whole)
	if err != nil {
		return err
	}
	a.out = append(a.out, a.finish)
	return nil
}

// garbled are the reasons that mean a call which was not delivered. Another
// attempt may do better.
var garbled = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "MALFORMED_RESPONSE": true, "UNEXPECTED_TOOL_CALL": true}

func finishReason(reason string) llm.FinishReason {
	switch reason {
	case "STOP", "FUNCTION_CALL": // the latter by servers that speak the API
		return llm.FinishStop
	case "MAX_TOKENS":
		return llm.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.FinishContentFilter
	default:
		return llm.FinishOther
	}
}

// usage returns the account as others keep it: thoughts are output.
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

func positive(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

func fixUTF8(s string) string {
	var m wire.Mender
	return m.Mend(s) + m.Flush()
}
