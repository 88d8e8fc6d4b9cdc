package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// An agent hands its thread over to another one by a tool call. It is a call like others, with a result and
// with people asked about it where a rule says so; that the thread is the other agent's is noted with the result.

// takers are the agents that an agent may hand the thread over to, as they are now: one that speaks for the thread
// itself, and neither works for another agent nor for a step.
func (a *Activities) takers(ctx context.Context, d *agents.Definition, s runs.Step) ([]narration.Handoff, error) {
	if s.Child != nil || s.Place != nil {
		return nil, nil
	}
	var all []narration.Handoff
	for _, name := range agents.Handoffs(d.Tools) {
		p, err := a.Agents.Latest(ctx, name)
		if errors.Is(err, catalog.ErrUnknownAgent) {
			return nil, a.lacking(ctx, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, narration.Handoff{
			HandoffTarget: runs.HandoffTarget{
				AgentRef:   runs.AgentRef{Agent: name, Revision: p.Revision, Limits: runs.LimitsOfRun(p.Limits)},
				OnNewInput: runs.OpenPolicy(p.OnNewInput), OnMissingResult: runs.OpenPolicy(p.MissingToolResult()),
			},
			Tool: agents.HandoffTool(name), Description: handoffDescription(p), Able: p.HandsOver(),
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

// handOver carries a hand-off out: what its call comes to, and whether the thread is the other agent's.
func (a *Activities) handOver(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (result tools.Result, outcome runs.Outcome, handed bool, err error) {
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" { // a person has put them in the place of the model's
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
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" {
		return complaint
	}
	return fmt.Sprintf("The conversation was not handed over: of several hand-offs at once only the first counts, a run has at most %d of them, "+
		"and only agents that answer by a model of their own, and for themselves, take part in one.", runs.MaxHandoffs)
}
