package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// An agent hands its thread over to another one by a tool call. It is a call like others, with a result and
// with people asked about it where a rule says so; that the thread is the other agent's is noted with the result.

// taker is an agent that a model is offered to hand the thread over to.
type taker struct {
	runs.HandoffTarget
	tool, description string
	able              bool // it speaks by a model of its own
}

// handoffSchema is what a call may say.
const handoffSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"reason":{"type":"string","description":"Why, for the agent that takes over. It knows the conversation."}}}`

// takers are the agents that an agent may hand the thread over to, as they are now: one that speaks for the thread
// itself, and neither works for another agent nor for a step.
func (a *Activities) takers(ctx context.Context, d *agents.Definition, s runs.Step) ([]taker, error) {
	if s.Child != nil || s.Place != nil {
		return nil, nil
	}
	var all []taker
	for _, name := range agents.Handoffs(d.Tools) {
		p, err := a.Agents.Latest(ctx, name)
		if errors.Is(err, catalog.ErrUnknownAgent) {
			return nil, a.lacking(ctx, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, taker{
			HandoffTarget: runs.HandoffTarget{
				AgentRef:   runs.AgentRef{Agent: name, Revision: p.Revision, Limits: runs.LimitsOfRun(p.Limits)},
				OnNewInput: runs.OpenPolicy(p.OnNewInput), OnMissingResult: runs.OpenPolicy(p.MissingToolResult()),
			},
			tool: agents.HandoffTool(name), description: handoffDescription(p), able: p.HandsOver(),
		})
	}
	return all, nil
}

func handoffDescription(p catalog.Published) string {
	text := fmt.Sprintf("Hands the conversation over to the agent %s, which speaks from then on.", p.Name)
	if p.Description != "" {
		text += " " + p.Description
	}
	return text
}

// offerTakers adds hand-offs to a model's tools, and returns those that it added: a tool of the same name goes before.
func offerTakers(offered []llm.Tool, takers []taker) ([]llm.Tool, []taker) {
	var added []taker
	for _, t := range takers {
		if !slices.ContainsFunc(offered, func(o llm.Tool) bool { return o.Name == t.tool }) {
			offered = append(offered, llm.Tool{Name: t.tool, Description: t.description, Parameters: json.RawMessage(handoffSchema)})
			added = append(added, t)
		}
	}
	return offered, added
}

// yield tells the workflow of a call that hands the thread over, if it is the turn's first one. index is its place
// in the message.
func (n *narrator) yield(c *narratedCall, call runs.Call, index int) {
	i := slices.IndexFunc(n.takers, func(t taker) bool { return t.tool == c.name })
	if i < 0 || call.Client || n.answer.Handoff != nil || !n.takers[i].able || reasonOf(c.arguments.String()) != "" {
		return // if it is one at all, the call is answered with what is wrong
	}
	n.answer.Handoff = &runs.Handoff{CallID: c.id, Tool: call.Tool, Index: index, To: n.takers[i].HandoffTarget}
}

// reasonOf finds what is wrong with the arguments of such a call.
func reasonOf(arguments string) (complaint string) {
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

// handOver carries a hand-off out: what its call comes to, and whether the thread is the other agent's.
func (a *Activities) handOver(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (result tools.Result, outcome runs.Outcome, handed bool, err error) {
	if complaint := reasonOf(call.Arguments); complaint != "" { // a person has put them in the place of the model's
		return tools.Failed(complaint), runs.OutcomeError, false, nil
	}
	if wanted, err := a.cancelRequested(ctx, in.Step); wanted || err != nil {
		return tools.Failed(callCancelled), runs.OutcomeCancelled, false, err
	}
	said := fmt.Sprintf("The conversation is handed over. From here on the agent %s speaks.", in.HandOverTo)
	return tools.Result{Content: said}, runs.OutcomeSuccess, true, nil
}

// notHandedOver tells the model why a call does not hand the thread over.
func notHandedOver(call agui.ToolCall) string {
	if complaint := reasonOf(call.Arguments); complaint != "" {
		return complaint
	}
	return fmt.Sprintf("The conversation was not handed over: of several hand-offs at once only the first counts, a run has at most %d of them, "+
		"and only agents that answer by a model of their own, and for themselves, take part in one.", runs.MaxHandoffs)
}
