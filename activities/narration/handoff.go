package narration

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// Handoff is an agent to which a model may hand over the thread, by a tool call.
type Handoff struct {
	runs.HandoffTarget
	Tool, Description string
	Able              bool // the agent answers by a model of its own
}

// handoffSchema is the schema of a call's arguments.
const handoffSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"reason":{"type":"string","description":"Why, for the agent that takes over. It knows the conversation."}}}`

// OfferHandoffs adds handoffs to a model's tools, and returns those that it added: a tool of the
// same name has precedence.
func OfferHandoffs(offered []llm.Tool, takers []Handoff) ([]llm.Tool, []Handoff) {
	var added []Handoff
	for _, t := range takers {
		if !slices.ContainsFunc(offered, func(o llm.Tool) bool { return o.Name == t.Tool }) {
			offered = append(offered, llm.Tool{Name: t.Tool, Description: t.Description, Parameters: json.RawMessage(handoffSchema)})
			added = append(added, t)
		}
	}
	return offered, added
}

// CheckHandoff returns what is wrong with the arguments of a call; "" = nothing.
func CheckHandoff(arguments string) (complaint string) {
	if strings.TrimSpace(arguments) == "" {
		return "" // some models write no arguments so
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
