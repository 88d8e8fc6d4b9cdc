package narration

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// Handoff is an agent that a model is offered to hand the thread over to.
type Handoff struct {
	runs.HandoffTarget
	Tool, Description string
	Able              bool // it speaks by a model of its own
}

// handoffSchema is what a call may say.
const handoffSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"reason":{"type":"string","description":"Why, for the agent that takes over. It knows the conversation."}}}`

// OfferHandoffs adds hand-offs to a model's tools, and returns those that it added: a tool of the same name goes before.
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

// yield tells the workflow of a call that hands the thread over, if it is the turn's first one. index is its place
// in the message.
func (n *Narrator) yield(c *toolCall, call runs.Call, index int) {
	i := slices.IndexFunc(n.Handoffs, func(t Handoff) bool { return t.Tool == c.name })
	if i < 0 || call.Client || n.Answer.Handoff != nil || !n.Handoffs[i].Able || CheckHandoff(c.arguments.String()) != "" {
		return // if it is one at all, the call is answered with what is wrong
	}
	n.Answer.Handoff = &runs.Handoff{CallID: c.id, Tool: call.Tool, Index: index, To: n.Handoffs[i].HandoffTarget}
}

// CheckHandoff finds what is wrong with the arguments of such a call.
func CheckHandoff(arguments string) (complaint string) {
	if strings.TrimSpace(arguments) == "" {
		return "" // as some models write that there are none
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
