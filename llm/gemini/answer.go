package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// answer turns the events of one completion into chunks.
type answer struct {
	wire.Completion
	model *Model
	req   *llm.Request

	text    wire.Mender
	thought wire.Mender
	called  int64 // calls that began

	said     int  // bytes of text told
	finished bool // the finish reason has come
}

func newAnswer(m *Model, req *llm.Request) *answer {
	return &answer{Completion: wire.NewCompletion(req, m.config.Provider, m.limits), model: m, req: req}
}

// Over is false: the stream has no last event, it ends.
func (a *answer) Over() bool { return false }

// Read takes the data of one event.
func (a *answer) Read(data []byte) error {
	data = bytes.TrimSpace(data)
	var e event
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return wire.Malformed("an event of the stream is not what the API describes")
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

// account notes what the last chunk is to report. It may come in any event; the
// counts grow.
func (a *answer) account(e event) {
	a.SetModel(e.ModelVersion)
	if e.Usage != nil {
		a.Finish.Usage = usage(*e.Usage)
		if !a.finished && a.Finish.Usage.Input != nil {
			a.ReportUsage(a.Finish.Usage)
		}
	}
}

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
		return wire.Malformed("the model wrote a tool call that the provider cannot read")
	}
	a.finished = true
	a.Finish.Reason = finishReason(c.FinishReason)
	return nil
}

func (a *answer) piece(p piece) error {
	signature := a.Unquote(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		a.seal(seal{Signature: signature, On: onCall, Place: a.place()})
		return a.call(a.Unquote(p.FunctionCall.ID), a.Unquote(p.FunctionCall.Name), p.FunctionCall.Args)
	case p.Thought:
		a.think(a.thought.Mend(a.Unquote(p.Text)))
		a.seal(seal{Signature: signature, On: onThought, Place: a.place()})
	default:
		before := a.place()
		a.addText(a.text.Mend(a.Unquote(p.Text)))
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
	a.Emit(llm.TextDelta{Text: text})
}

func (a *answer) think(text string) {
	if text != "" {
		a.Emit(llm.ReasoningDelta{Text: text})
	}
}

// seal closes the thinking before a part that is signed.
func (a *answer) seal(s seal) {
	if s.Signature == "" {
		return
	}
	a.think(a.thought.Flush())
	data, _ := json.Marshal(s) // strings and numbers always have a JSON form
	a.Emit(llm.ReasoningEnd{Provider: a.model.config.Provider, Data: data})
}

// place returns where the completion is now.
func (a *answer) place() wire.Place {
	return wire.Place{Text: a.said, Calls: a.Calls.Len()}
}

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

// End closes the completion at the end of the stream; err is why it ended, if that was not regular.
// The finish reason is the only mark of a whole completion.
func (a *answer) End(err error) error {
	if !a.finished {
		return wire.Truncated(err)
	}
	a.think(a.thought.Flush())
	a.addText(a.text.Flush())
	return a.Close()
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
