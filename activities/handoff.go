package activities

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// This file has handoffs: tool calls after which the thread belongs to another agent. CallModel
// offers them, the workflow makes the first one of a turn after all other calls, and CallTool
// carries it out here.

// handoffTargets returns the agents to which an agent's model may hand over the thread, in their
// current revisions. Only the run's own agent has any: subagents and agents of steps do not own the
// thread. Agents that are not published are a lackingError.
func (a *Activities) handoffTargets(ctx context.Context, d *agents.Definition, s runs.Step) ([]narration.Handoff, error) {
	if s.Child != nil || s.Place != nil {
		return nil, nil
	}
	published, err := a.latest(ctx, agents.Handoffs(d.Tools))
	if err != nil {
		return nil, err
	}
	var all []narration.Handoff
	for _, p := range published {
		all = append(all, narration.Handoff{
			HandoffTarget: runs.HandoffTarget{
				AgentRef:   runs.AgentRef{Agent: p.Name, Revision: p.Revision, Limits: runs.LimitsOfRun(p.Limits)},
				OnNewInput: runs.OpenPolicy(p.OnNewInput), OnMissingResult: runs.OpenPolicy(p.MissingToolResult()),
			},
			Tool: agents.HandoffTool(p.Name), Description: handoffDescription(p), Able: p.HandsOver(),
		})
	}
	return all, nil
}

// handoffDescription returns the description of the tool by which a model hands over to an agent.
func handoffDescription(p catalog.Published) string {
	text := fmt.Sprintf("Hands the conversation over to the agent %s, which answers from then on.", p.Name)
	if p.Description != "" {
		text += " " + p.Description
	}
	return text
}

// handOver carries out a handoff. It has no effect by itself: finishTool writes it with the result
// of the call, and later steps read it from the snapshot. handed reports whether the thread changes
// its agent.
func (a *Activities) handOver(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (result tools.Result, outcome runs.Outcome, handed bool, err error) {
	// The narrator has checked the model's arguments, but an approver may have edited them.
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" {
		return tools.Failed(complaint), runs.OutcomeError, false, nil
	}
	if wanted, err := a.cancelRequested(ctx, in.Step); wanted || err != nil {
		return tools.Failed(callCancelled), runs.OutcomeCancelled, false, err
	}
	text := fmt.Sprintf("The conversation is handed over. From here on the agent %s answers.", in.HandOverTo)
	return tools.Result{Content: text}, runs.OutcomeSuccess, true, nil
}

// notHandedOver returns the result, for the model, of a handoff that is not carried out.
func notHandedOver(call agui.ToolCall) string {
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" {
		return complaint
	}
	return fmt.Sprintf("The conversation was not handed over: only the first handoff of a turn counts, a run has at most %d handoffs, "+
		"and only agents with a model of their own that are not subagents can take part.", runs.MaxHandoffs)
}
