package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the beginning of subagents: which agents a model may call, how a subagent is
// announced to clients, and what its task is. answer.go has their end, the workflow agent.child.v1
// their work.

// subagentID returns the AG-UI subagentRunId of the subagent that works for a call, or of a branch.
// It depends on the call only, so a subagent keeps it when a later run continues it.
func subagentID(callID string) string {
	if rest, ok := strings.CutPrefix(callID, "call_"); ok {
		return "sub_" + rest
	}
	return "sub_" + callID
}

// subagents returns the subagents that the model of a step's agent may call, in their current
// revisions. It returns none at the maximal depth of subagents. The error is that of latest.
func (a *Activities) subagents(ctx context.Context, d *agents.Definition, s runs.Step) ([]narration.Subagent, error) {
	// Branches do not count: they hand no work on.
	if s.Child != nil && s.Child.Depth+1 >= runs.MaxDepth {
		return nil, nil
	}
	published, err := a.latest(ctx, s, agents.Subagents(d.Tools))
	if err != nil {
		return nil, err
	}
	var subagents []narration.Subagent
	for _, p := range published {
		subagents = append(subagents, newSubagent(p))
	}
	return subagents, nil
}

// latest returns the current revisions of the agents that the definition of a step's agent names.
// The error catalog.ErrUnknownAgent names all agents that are not published, in their order.
func (a *Activities) latest(ctx context.Context, s runs.Step, names []string) ([]catalog.Published, error) {
	referrer := catalog.Referrer(s.Run.Tenant, s.Revision)
	var all []catalog.Published
	var unknown error
	for _, name := range names {
		p, err := a.Agents.Latest(ctx, referrer, name)
		switch {
		case errors.Is(err, catalog.ErrUnknownAgent):
			unknown = errors.Join(unknown, err)
		case err != nil:
			return nil, err
		}
		all = append(all, p)
	}
	return all, unknown
}

// newSubagent returns a published agent as a subagent. The workflow gets its limits, but no soft
// ones: a subagent does not ask approvers whether it may continue.
func newSubagent(published catalog.Published) narration.Subagent {
	return narration.Subagent{
		AgentRef: runs.AgentRef{
			Agent: published.Name, Revision: published.Revision, Limits: runs.LimitsOfSubagent(published.Limits),
			Steps: len(published.Steps) > 0, Program: published.Workflow, HasResult: published.Workflow != "" && published.Output != nil,
		},
		Description: published.Description,
	}
}

// uncallableResult returns the result, for the model, of a call whose tool the agent does not have.
// A call of a subagent or a handoff comes here if the workflow could not carry it out.
func uncallableResult(d *agents.Definition, call agui.ToolCall) string {
	if slices.Contains(agents.Subagents(d.Tools), call.Name) {
		if _, err := narration.TaskOf(call.Arguments); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("The agent %.64q cannot be called here: subagents are nested too deep, or the turn has too many calls.", call.Name)
	}
	if slices.ContainsFunc(agents.Handoffs(d.Tools), func(name string) bool { return agents.HandoffTool(name) == call.Name }) {
		return refusedHandoffText(call)
	}
	return fmt.Sprintf("There is no tool %.64q.", call.Name)
}

// announceSubagent writes the first record of a subagent on its own lane, with SUBAGENT_STARTED,
// after the step of the call that it works for is open. The first activity of the child workflow
// calls it. It returns the record for Begin.
func (a *Activities) announceSubagent(ctx context.Context, p stream.Place, in runs.Step, call runs.ToolCall) (uint64, error) {
	events, err := a.announcement(ctx, p, in, call)
	if err != nil {
		return 0, err
	}
	return a.Log.OpenStep(ctx, p, nil, events...)
}

// announcement opens the step of the call that a subagent works for, and returns the events of the
// subagent's first record.
func (a *Activities) announcement(ctx context.Context, p stream.Place, in runs.Step, call runs.ToolCall) ([]agui.Event, error) {
	if _, err := a.openToolStep(ctx, call); err != nil {
		return nil, err
	}
	d, err := a.Agents.Revision(ctx, in.Run.Tenant, in.Agent, in.Revision)
	if err != nil {
		return nil, err
	}
	revision, err := json.Marshal(in.Revision)
	if err != nil {
		return nil, fmt.Errorf("activities: encode revision: %w", err)
	}
	started := &agui.SubagentStarted{
		BaseEvent: agui.BaseEvent{Metadata: agui.Metadata{"perdure.revision": revision}}, SubagentRunID: p.Subagent, Name: in.Agent,
		Description: d.Description, ParentToolCallID: in.Child.CallID, ParentMessageID: in.Child.MessageID,
	}
	// Clients do not know the call of a hidden step.
	if in.IsHidden() {
		started.ParentToolCallID, started.ParentMessageID = "", ""
	}
	// The call is one of another subagent.
	if parent := call.Child; parent != nil {
		started.ParentSubagentRunID = subagentID(parent.CallID)
	}
	events := []agui.Event{started}
	if in.Name != "" {
		events = append(events, &agui.StepStarted{StepName: in.Name})
	}
	return events, nil
}

// task returns the task of a subagent: the argument of its call, as the model wrote it or an
// approver edited it. The error is final if the conversation has no such call or the arguments have
// no task, because the workflow has checked both.
func (a *Activities) task(ctx context.Context, child *runs.Child, snap *snapshot.Snapshot) (string, error) {
	subagentCall := runs.ToolCall{CallID: child.CallID, MessageID: child.MessageID}
	call, err := findCall(snap, subagentCall)
	if err != nil {
		return "", err
	}
	// The call needed an approval: what approvers approved, or edited, is the task.
	if child.Args != "" {
		subagentCall.Decision = &runs.Decision{Kind: runs.DecisionApprove, Proposal: child.Edit, ArgsDigest: child.Args}
		if child.Edit > 0 {
			subagentCall.Decision.Kind = runs.DecisionEdit
		}
		if _, _, err := a.executeDecision(ctx, subagentCall, &call); err != nil {
			return "", err
		}
	}
	task, err := narration.TaskOf(call.Arguments)
	if err != nil {
		return "", temporal.NewNonRetryableApplicationError("the arguments of the subagent's call have no valid task", runs.CodeInternal, nil)
	}
	return task, nil
}
