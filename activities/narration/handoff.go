package narration

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// Handoff is an agent to which a model may hand over the thread, by a call of a tool.
type Handoff struct {
	runs.HandoffTarget
	// Tool is the name of the tool. CanTakeOver tells that the agent answers with a
	// model of its own, so it is neither a pipeline nor a program.
	Tool, Description string
	CanTakeOver       bool
}

// handoffSchema is the JSON Schema of the arguments of a handoff.
const handoffSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"reason":{"type":"string","description":"The reason for the handoff, for the agent that takes over. That agent has the conversation."}}}`

// OfferHandoffs adds handoffs to a model's tools. It returns all tools, and the handoffs that it
// added: an existing tool of the same name has precedence.
func OfferHandoffs(offered []llm.Tool, handoffs []Handoff) ([]llm.Tool, []Handoff) {
	var added []Handoff
	for _, handoff := range handoffs {
		if !slices.ContainsFunc(offered, func(tool llm.Tool) bool { return tool.Name == handoff.Tool }) {
			offered = append(offered, llm.Tool{Name: handoff.Tool, Description: handoff.Description, Parameters: json.RawMessage(handoffSchema)})
			added = append(added, handoff)
		}
	}
	return offered, added
}

// CheckHandoff returns what is wrong with the arguments of a handoff, as a text for the model; "" =
// they are valid.
func CheckHandoff(arguments string) (complaint string) {
	// Some models write nothing if they have no arguments.
	if strings.TrimSpace(arguments) == "" {
		return ""
	}
	var in struct {
		Reason string `json:"reason"`
	}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil || decoder.More() {
		return `invalid arguments: expected {"reason": "…"}, or {}`
	}
	return ""
}
