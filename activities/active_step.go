package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file prepares the next action of a pipeline: it turns a pipeline.Action into the part of
// runs.AdvanceResult that the workflow carries out, and stores its content for the activities that
// follow.

// newActiveStep returns the active step of an action, with the agent of the pipeline. beginAgent
// replaces the agent if the step names another one.
func (adv *advancer) newActiveStep(action pipeline.Action) *runs.ActiveStep {
	return &runs.ActiveStep{
		AgentRef:     runs.AgentRef{Agent: adv.in.Agent, Revision: adv.in.Revision, Limits: runs.LimitsOfSubagent(adv.definition.Limits)},
		PipelineStep: runs.StepRef{Path: action.Path, Name: action.Name, Scope: adv.scope(action.Path), Tree: adv.in.Position.Tree, Hidden: pipeline.IsHidden(adv.definition, action.Path)},
		Deadline:     action.Deadline,
	}
}

// scope returns the mark of the messages of a step. It derives from the run that began the
// pipeline, so later runs that continue the pipeline use the same one. A pipeline that works for a
// call adds its home: several calls of a run may work through the same steps, and their agents do
// not see each other's messages.
func (adv *advancer) scope(path string) string {
	origin := adv.place.Run
	origin.ID = adv.in.Position.Origin
	if home := adv.in.Position.TreePosition.Home; home != "" {
		path = home + "/" + path
	}
	return origin.Identify("step", path)
}

// beginAgent begins the agent of a step, whose turns the workflow runs in the same execution. An
// agent that is itself a pipeline or a program becomes a call of a subagent (beginCall). If its
// answer was invalid, another call has the validation errors in its task; CallModel sends the answers
// of other agents back. The error for an agent that is not published is catalog.ErrUnknownAgent.
func (adv *advancer) beginAgent(ctx context.Context, action pipeline.Action) error {
	step := adv.newActiveStep(action)
	if action.Agent.Name == "" {
		d, err := pipeline.Inline(adv.definition, action.Path)
		if err != nil {
			return err
		}
		step.PipelineStep.Inline, step.Limits = true, runs.LimitsOfSubagent(d.Limits)
		// Inline fills in the limits of the pipeline's agent. Tokens and cost have no default here:
		// without a limit of the step, those of the run apply.
		limits := pipeline.StepAt(adv.definition, action.Path).Agent.Limits
		step.Limits.Tokens, step.Limits.Cost = limits.Tokens, int64(limits.Cost)
	} else {
		published, err := adv.activities.Agents.Latest(ctx, catalog.Referrer(adv.in.Run.Tenant, adv.in.Revision), action.Agent.Name)
		if err != nil {
			return err
		}
		if len(published.Steps) > 0 || published.Workflow != "" {
			// The subagent would be one level deeper than this pipeline's agent.
			if child := adv.in.Child; child != nil && child.Depth+1 >= runs.MaxDepth {
				return errTooDeep
			}
			if err := adv.beginCall(ctx, action, newSubagent(published)); err != nil {
				return err
			}
			adv.next.Active.Structured = published.Output != nil
			return nil
		}
		step.AgentRef = runs.AgentRef{Agent: action.Agent.Name, Revision: published.Revision, Limits: runs.LimitsOfSubagent(published.Limits)}
		if stream.IsTenantRevision(published.Revision) {
			adv.result.TenantAgents = []stream.AgentRevision{{Agent: published.Name, Revision: published.Revision}}
		}
	}
	adv.next.Active = step
	adv.storeModelInput(action.Agent)
	return nil
}

// storeModelInput stores the prompt of an agent step in the record, and the pipeline's agent and
// revision if the step requires a schema from an agent that it names: the model call of that agent
// then finds the schema by them. next.Prompts tells the workflow that the record has one of the
// two.
func (adv *advancer) storeModelInput(agent *pipeline.Agent) {
	if agent.Prompt != nil {
		adv.stored.Prompt, adv.next.Active.PipelineStep.Isolated = *agent.Prompt, true
	}
	if agent.Schema != nil && agent.Name != "" {
		adv.stored.Agent, adv.stored.Revision = adv.in.Agent, adv.in.Revision
	}
	adv.next.Prompts = agent.Prompt != nil || adv.stored.Agent != ""
}

// errTooDeep is the error of an agent step whose subagent would exceed runs.MaxDepth.
// unobtainableFailure turns it into a failure of the step.
var errTooDeep = errors.New("activities: subagents are nested too deep")

// beginCall begins a step that is a tool call, an approval or a subagent. It writes the call as
// the only call of an assistant message, so clients, decisions and tools treat it like a model's
// call. The workflow finds it in next.Answer. subagents has the subagent of an agent step, and is
// omitted otherwise.
func (adv *advancer) beginCall(ctx context.Context, action pipeline.Action, subagents ...narration.Subagent) error {
	n := narration.New(adv.place.Run, adv.in.ID, nil)
	active := adv.newActiveStep(action)
	n.Scope, n.Visibility = active.PipelineStep.Scope, visibilityOf(adv.in.Step, &active.PipelineStep)
	var tool string
	var arguments []byte
	var err error
	switch {
	case action.Approve != nil:
		tool, arguments, active.PipelineStep.Inline = pipeline.ApproveTool, action.Approve.Args, true
		err = adv.requestApproval(n, action)
	case action.Agent != nil:
		tool, n.Subagents = action.Agent.Name, subagents
		n.OfferOnly(tool)
		arguments, err = adv.taskArguments(action.Agent)
	default:
		treeStep := pipeline.StepAt(adv.definition, action.Path)
		// A call with a compensation must end, so that it is known whether it has to be
		// compensated. Compensations themselves are not compensated.
		active.OutlastsCancel = treeStep != nil && treeStep.Compensate != nil && adv.next.TreePosition.Undoing == nil
		tool, arguments = action.Tool.Tool, action.Tool.Args
		err = adv.configureNarrator(ctx, n)
	}
	if err != nil {
		return err
	}
	callID, events, result, err := n.Propose(tool, string(arguments))
	if err != nil {
		return err
	}
	adv.result.Messages, adv.result.ProviderIDs, adv.result.Scope = result.Messages, result.ProviderIDs, result.Scope
	adv.result.Visibility, adv.result.ShownCalls = result.Visibility, result.ShownCalls
	adv.result.TenantAgents = result.TenantAgents
	active.CallID, adv.next.Active, adv.next.Answer = callID, active, &n.Answer
	// The advance itself is not part of the hidden step.
	if n.Visibility == stream.VisibleToAll || len(result.ShownCalls) > 0 {
		adv.addEvents(events...)
	}
	return nil
}

// taskArguments returns the arguments for a subagent's call: the prompt of the step, or the text of
// the last user message, with the validation errors of an invalid answer.
func (adv *advancer) taskArguments(agent *pipeline.Agent) ([]byte, error) {
	task := adv.userText
	if agent.Prompt != nil {
		task = *agent.Prompt
	}
	if agent.Repair != "" {
		task += "\n\n" + agent.Repair
	}
	raw, err := json.Marshal(map[string]string{"task": task})
	if err != nil {
		return nil, fmt.Errorf("activities: encode task: %w", err)
	}
	return raw, nil
}

// requestApproval configures the narrator for an approve step: the step's rule gates the call of
// the reserved tool pipeline.ApproveTool. The message for approvers is stored in the record.
func (adv *advancer) requestApproval(n *narration.Narrator, action pipeline.Action) error {
	d, err := pipeline.Rules(adv.definition, action.Path)
	if err != nil {
		return err
	}
	adv.stored.Question, adv.next.Prompts = action.Approve.Message, true
	n.OfferOnly(pipeline.ApproveTool)
	n.Gate = func(_, arguments string) *runs.Approval { return newApproval(d, 0, arguments) }
	return nil
}

// configureNarrator configures the narrator with the tools, subagents, client tools and approval
// rules of the pipeline's agent, as CallModel does for a model's calls. The error is a lackingError
// if a tool of the agent is missing.
func (adv *advancer) configureNarrator(ctx context.Context, n *narration.Narrator) (err error) {
	serverTools, err := adv.activities.selectTools(ctx, adv.definition)
	if err != nil {
		return err
	}
	n.SetSpecs(serverTools)
	n.State = adv.definition.State
	offered := specsOf(serverTools)
	subagents, err := adv.activities.subagents(ctx, adv.definition, adv.in.Step)
	if err != nil {
		return err
	}
	offered, n.Subagents = narration.OfferSubagents(offered, subagents)
	n.AllowNames(offered)
	if adv.in.Child == nil && n.Visibility == stream.VisibleToAll {
		if n.Clients, err = adv.activities.clientTools(ctx, adv.definition, adv.thread, offered); err != nil {
			return err
		}
	}
	n.Gate, err = adv.activities.approvalGate(ctx, adv.definition, adv.in.Step, adv.thread)
	return err
}

// maxAskingBranches bounds how many branches run concurrently if they may raise interrupts: the
// interrupts of all of them must fit into one payload.
const maxAskingBranches = 8

// beginBranches begins the branches of a parallel or map step. The record keeps their items. It
// also checks the tenant's day, because branches cannot ask approvers: next.Exceeded is set if
// approvers have to allow more before the branches begin.
func (adv *advancer) beginBranches(ctx context.Context, action pipeline.Action) (err error) {
	b := action.Branches
	branches := &runs.Branches{
		Path: action.Path, Names: b.Names, Count: b.Count, Concurrency: max(1, min(b.Concurrency, b.Count)),
		StopOnFailure: b.Stop, Deadline: action.Deadline,
	}
	if len(adv.definition.Approvals) > 0 || pipeline.Asks(adv.definition, action.Path) {
		branches.Concurrency = min(branches.Concurrency, maxAskingBranches)
	}
	step := pipeline.StepAt(adv.definition, action.Path)
	// Branches that compensate (b.Ends is set) are not compensated themselves.
	branches.Compensates = b.Ends == nil && step.Compensates()
	adv.next.Branches, adv.stored.Items, adv.stored.Ends = branches, b.Items, b.Ends
	if adv.in.Day == nil || !callsModel(step) {
		return nil
	}
	// A hard budget that is used up is not the failure of this step: the first branch that calls a
	// model fails with it.
	if adv.next.Exceeded, err = adv.activities.checkDay(ctx, adv.in.Run.Tenant, adv.in.Day); errors.Is(err, budget.ErrExceeded) {
		return nil
	}
	return err
}

// callsModel reports whether a step, or a step within it, has an agent.
func callsModel(s *agents.Step) bool {
	found := false
	s.Each(func(inner *agents.Step) { found = found || inner.Agent != nil })
	return found
}
