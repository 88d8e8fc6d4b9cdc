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
// thread. The error is that of latest.
func (a *Activities) handoffTargets(ctx context.Context, d *agents.Definition, s runs.Step) ([]narration.Handoff, error) {
	if s.Child != nil || s.PipelineStep != nil {
		return nil, nil
	}
	all, err := a.latest(ctx, s, agents.Handoffs(d.Tools))
	if err != nil {
		return nil, err
	}
	var targets []narration.Handoff
	for _, published := range all {
		targets = append(targets, narration.Handoff{
			HandoffTarget: runs.HandoffTarget{
				AgentRef:   runs.AgentRef{Agent: published.Name, Revision: published.Revision, Limits: runs.LimitsOfRun(published.Limits)},
				OnNewInput: runs.OpenPolicy(published.OnNewInput), OnMissingResult: runs.OpenPolicy(published.MissingToolResult()),
			},
			Tool: agents.HandoffTool(published.Name), Description: handoffDescription(published), CanTakeOver: published.HandsOver(),
		})
	}
	return targets, nil
}

// handoffDescription returns the description of the tool by which a model hands over to an agent.
func handoffDescription(target catalog.Published) string {
	text := fmt.Sprintf("Hands the conversation over to the agent %s, which answers from then on.", target.Name)
	if target.Description != "" {
		text += " " + target.Description
	}
	return text
}

// handOver carries out a handoff. It has no effect by itself: finishCall writes it with the result
// of the call, and later steps read it from the snapshot. handedOver reports whether the thread
// changes its agent.
func (a *Activities) handOver(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (result tools.Result, outcome runs.Outcome, handedOver bool, err error) {
	// The narrator has checked the model's arguments, but an approver may have edited them.
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" {
		return tools.Failed(complaint), runs.OutcomeError, false, nil
	}
	if cancelRequested, err := a.cancelRequested(ctx, in.Step); cancelRequested || err != nil {
		return tools.Failed(callCancelled), runs.OutcomeCancelled, false, err
	}
	text := fmt.Sprintf("The conversation is handed over. From here on the agent %s answers.", in.HandOverTo)
	return tools.Result{Content: text}, runs.OutcomeSuccess, true, nil
}

// refusedHandoffText returns the result, for the model, of a handoff that is not carried out.
func refusedHandoffText(call agui.ToolCall) string {
	if complaint := narration.CheckHandoff(call.Arguments); complaint != "" {
		return complaint
	}
	return fmt.Sprintf("The conversation was not handed over: only the first handoff of a turn counts, a run has at most %d handoffs, "+
		"and only agents with a model of their own that are not subagents can take part.", runs.MaxHandoffs)
}
