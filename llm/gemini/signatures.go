package gemini

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// seal is the [llm.Reasoning.Data] of a thought signature: the signature, and which part of the
// answer carries it. Its Place is the start of that part. The API requires signatures on the parts
// that it sent them with (Gemini API, "Thought signatures").
type seal struct {
	Signature string `json:"signature"`
	On        string `json:"on"`               // onCall, onText or onThought
	Length    int    `json:"length,omitempty"` // of the part's text, in bytes
	wire.ItemPosition
}

// The kinds of parts that carry a signature.
const (
	onCall    = "call"
	onText    = "text"
	onThought = "thought"
)

// unseal decodes the data of a block. It returns false if the block is from another provider or is
// not valid; clients can change the data.
func (m *Model) unseal(block llm.Reasoning) (seal, bool) {
	var s seal
	ok := block.Provider == m.config.Provider && json.Unmarshal(block.Data, &s) == nil && s.Signature != ""
	return s, ok
}

// placeOf returns the position of a block for [wire.Weave].
func (m *Model) placeOf(block llm.Reasoning) (wire.ItemPosition, bool) {
	s, ok := m.unseal(block)
	return s.ItemPosition, ok
}

// modelParts converts an assistant message to parts. Parts with a signature have the same
// boundaries as in the answer; other text is joined.
func (m *Model) modelParts(message llm.Message) []part {
	if wire.Blank(message.Text()) && len(message.ToolCalls) == 0 {
		return nil // the API rejects a turn that has only thoughts
	}
	var s signer
	for element := range wire.Weave(message, m.placeOf) {
		switch {
		case element.Block != nil:
			seal, _ := m.unseal(*element.Block)
			s.seal(seal, element.Block.Text)
		case element.Call != nil:
			s.call(*element.Call)
		default:
			s.text(element.Text)
		}
	}
	return s.parts
}

// signer builds the parts of an assistant message. Weave yields a seal before the part that carries
// it, so signer keeps the signature until that part.
type signer struct {
	parts  []part
	onCall string // signature for the next call; "" = none
	onText seal   // seal for the next text
}

// seal processes a seal. thought is the visible text of its block.
func (s *signer) seal(seal seal, thought string) {
	switch {
	case seal.On == onCall:
		s.onCall = seal.Signature
	case seal.On == onThought:
		s.parts = append(s.parts, part{Text: &thought, Thought: true, ThoughtSignature: seal.Signature})
	case seal.Length > 0:
		s.onText = seal
	default: // a part that has a signature and no text
		empty := ""
		s.parts = append(s.parts, part{Text: &empty, ThoughtSignature: seal.Signature})
	}
}

// call appends a call with the pending signature. Names and arguments of other providers can have
// forms that the API rejects.
func (s *signer) call(call llm.ToolCall) {
	s.parts = append(s.parts, part{
		FunctionCall:     &functionCall{ID: call.ID, Name: wire.Nameable(call.Name), Args: wire.Object(call.Arguments)},
		ThoughtSignature: s.onCall,
	})
	s.onCall = ""
}

// text appends a text: the first Length bytes as the part with the pending signature, and the rest
// as a part without.
func (s *signer) text(text string) {
	signed := min(max(s.onText.Length, 0), len(text))
	for signed < len(text) && !utf8.RuneStart(text[signed]) {
		signed++
	}
	if head := text[:signed]; head != "" {
		s.parts = append(s.parts, part{Text: &head, ThoughtSignature: s.onText.Signature})
	}
	if rest := text[signed:]; !wire.Blank(rest) {
		s.parts = append(s.parts, part{Text: &rest})
	}
	s.onText = seal{}
}

// unsigned is the placeholder signature that the API defines for calls that no Gemini model
// produced (Gemini API, "Thought signatures", FAQ).
const unsigned = "skip_thought_signature_validator"

// sign sets the placeholder on the first call of parts if it has no signature. The API requires a
// signature only on the first of parallel calls.
func sign(parts []part) {
	for i := range parts {
		if parts[i].FunctionCall == nil {
			continue
		}
		if parts[i].ThoughtSignature == "" {
			parts[i].ThoughtSignature = unsigned
		}
		return
	}
}
