package gemini

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// seal is the signature of a part, as [llm.Reasoning.Data], with what is needed
// to find the part again. Its place is where the part begins.
type seal struct {
	Signature string `json:"signature"`
	On        string `json:"on"`               // onCall, onText or onThought
	Length    int    `json:"length,omitempty"` // bytes of the part's text
	wire.Place
}

// The parts that signatures stand on.
const (
	onCall    = "call"
	onText    = "text"
	onThought = "thought"
)

// unseal reads the data of a block, if it is one of ours.
func (m *Model) unseal(block llm.Reasoning) (seal, bool) {
	var s seal
	ok := block.Provider == m.config.Provider && json.Unmarshal(block.Data, &s) == nil && s.Signature != ""
	return s, ok
}

func (m *Model) placeOf(block llm.Reasoning) (wire.Place, bool) {
	s, ok := m.unseal(block)
	return s.Place, ok
}

// modelParts returns an answer in the parts in which it came, as far as they bear
// signatures.
func (m *Model) modelParts(message llm.Message) []part {
	if wire.Blank(message.Text()) && len(message.ToolCalls) == 0 {
		return nil // thinking alone is no answer
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

// signer puts signatures on the parts that follow them.
type signer struct {
	parts  []part
	onCall string // for the next call
	onText seal   // for the next text
}

func (s *signer) seal(seal seal, thought string) {
	switch {
	case seal.On == onCall:
		s.onCall = seal.Signature
	case seal.On == onThought:
		s.parts = append(s.parts, part{Text: &thought, Thought: true, ThoughtSignature: seal.Signature})
	case seal.Length > 0:
		s.onText = seal
	default: // a part with a signature and nothing else
		empty := ""
		s.parts = append(s.parts, part{Text: &empty, ThoughtSignature: seal.Signature})
	}
}

func (s *signer) call(call llm.ToolCall) {
	s.parts = append(s.parts, part{
		FunctionCall:     &functionCall{ID: call.ID, Name: wire.Nameable(call.Name), Args: wire.Object(call.Arguments)},
		ThoughtSignature: s.onCall,
	})
	s.onCall = ""
}

// text appends the signed part of a text, if there is one, and the rest.
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

// unsigned is what the API wants on a call that was made by no model of its own.
const unsigned = "skip_thought_signature_validator"

// sign puts it on the first call of an answer of this turn, which must not be
// without.
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
