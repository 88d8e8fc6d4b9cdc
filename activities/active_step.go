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
)

// This file prepares the next action of a pipeline: it turns a pipeline.Action into the part of
// runs.AdvanceResult that the workflow carries out, and stores its content for the activities that
// follow.

// leaf returns the active step of an action, with the agent of the pipeline. takeAgent replaces the
// agent if the step names another one.
func (a *advancer) leaf(do pipeline.Action) *runs.ActiveStep {
	return &runs.ActiveStep{
		AgentRef: runs.AgentRef{Agent: a.in.Agent, Revision: a.in.Revision, Limits: runs.LimitsOfSubagent(a.definition.Limits)},
		Place:    runs.StepPlace{Path: do.Path, Name: do.Name, Scope: a.scope(do.Path), Tree: a.in.Position.Tree},
		Deadline: do.Deadline,
	}
}

// scope returns the mark of the messages of a step. It derives from the run that began the
// pipeline, so later runs that continue the pipeline use the same one. A pipeline that works for a
// call adds its home: several calls of a run may work through the same steps, and their agents do
// not see each other's messages.
func (a *advancer) scope(at string) string {
	origin := a.place.Run
	origin.ID = a.in.Position.Origin
	if home := a.in.Position.Cursor.Home; home != "" {
		at = home + "/" + at
	}
	return origin.Identify("step", at)
}

// takeAgent begins the agent of a step, whose turns the workflow runs in the same execution. An
// agent that is itself a pipeline or a program becomes a call of a subagent (takeCall). If the
// answer of the agent was invalid, takeAgent keeps the step active and stores the validation errors
// as a further prompt. An agent that is not published is a lackingError.
func (a *advancer) takeAgent(ctx context.Context, do pipeline.Action) error {
	if was := a.in.Position.Active; do.Agent.Repair != "" && was != nil && was.CallID == "" {
		// The agent continues with its own messages and turns. The prompt follows the answer that
		// was invalid.
		a.next.Active, a.next.Prompts = was, true
		a.stored.Prompt, a.stored.After = do.Agent.Repair, a.in.Position.Answered
		return nil
	}
	leaf := a.leaf(do)
	if do.Agent.Name == "" {
		d, err := pipeline.Inline(a.definition, do.Path)
		if err != nil {
			return err
		}
		leaf.Place.Inline, leaf.Limits = true, runs.LimitsOfSubagent(d.Limits)
		// Inline fills in the limits of the pipeline's agent. Tokens and cost have no default here:
		// without a limit of the step, those of the run apply.
		own := pipeline.StepAt(a.definition, do.Path).Agent.Limits
		leaf.Limits.Tokens, leaf.Limits.Cost = own.Tokens, int64(own.Cost)
	} else {
		p, err := a.activities.Agents.Latest(ctx, do.Agent.Name)
		if errors.Is(err, catalog.ErrUnknownAgent) {
			return a.activities.lacking(ctx, err)
		}
		if err != nil {
			return err
		}
		if len(p.Steps) > 0 || p.Workflow != "" {
			// The subagent would be one level deeper than this pipeline's agent.
			if b := a.in.Child; b != nil && b.Depth+1 >= runs.MaxDepth {
				return errTooDeep
			}
			return a.takeCall(ctx, do, delegateOf(p))
		}
		leaf.AgentRef = runs.AgentRef{Agent: do.Agent.Name, Revision: p.Revision, Limits: runs.LimitsOfSubagent(p.Limits)}
	}
	a.next.Active = leaf
	a.storeModelInput(do.Agent)
	return nil
}

// storeModelInput stores the prompt of an agent step in the record, and the pipeline's agent and
// revision if the step requires a schema from an agent that it names: the model call of that agent
// then finds the schema by them. next.Prompts tells the workflow that the record has one of the
// two.
func (a *advancer) storeModelInput(do *pipeline.Agent) {
	if do.Prompt != nil {
		a.stored.Prompt, a.next.Active.Place.Isolated = *do.Prompt, true
	}
	if do.Schema != nil && do.Name != "" {
		a.stored.Agent, a.stored.Revision = a.in.Agent, a.in.Revision
	}
	a.next.Prompts = do.Prompt != nil || a.stored.Agent != ""
}

// errTooDeep is the error of an agent step whose subagent would exceed runs.MaxDepth. unobtainable
// turns it into a failure of the step.
var errTooDeep = errors.New("activities: subagents are nested too deep")

// takeCall begins a step that is a tool call, an approval or a subagent. It writes the call as the
// only call of an assistant message, so clients, decisions and tools treat it like a model's call.
// The workflow finds it in next.Answer. to is the subagent of an agent step, and is omitted
// otherwise.
func (a *advancer) takeCall(ctx context.Context, do pipeline.Action, to ...narration.Subagent) error {
	n := narration.New(a.place.Run, a.in.ID, nil)
	leaf := a.leaf(do)
	var tool string
	var arguments []byte
	var err error
	switch {
	case do.Approve != nil:
		tool, arguments, leaf.Place.Inline = pipeline.ApproveTool, do.Approve.Args, true
		err = a.requestApproval(n, do)
	case do.Agent != nil:
		tool, n.Subagents = do.Agent.Name, to
		n.OfferOnly(tool)
		arguments, err = a.task(do.Agent)
	default:
		step := pipeline.StepAt(a.definition, do.Path)
		// A call with a compensation must end, so that it is known whether it has to be
		// compensated. Compensations themselves are not compensated.
		leaf.OutlastsCancel = step != nil && step.Compensate != nil && a.next.Cursor.Undoing == nil
		tool, arguments = do.Tool.Tool, do.Tool.Args
		err = a.offer(ctx, n)
	}
	if err != nil {
		return err
	}
	callID, events, told, err := n.Propose(tool, string(arguments))
	if err != nil {
		return err
	}
	a.result.Messages, a.result.ProviderIDs, a.result.Scope = told.Messages, told.ProviderIDs, leaf.Place.Scope
	leaf.CallID, a.next.Active, a.next.Answer = callID, leaf, &n.Answer
	a.tell(events...)
	return nil
}

// task returns the arguments for a subagent's call: the prompt of the step, or the text of the last
// user message, with the validation errors of an invalid answer.
func (a *advancer) task(do *pipeline.Agent) ([]byte, error) {
	task := a.userText
	if do.Prompt != nil {
		task = *do.Prompt
	}
	if do.Repair != "" {
		task += "\n\n" + do.Repair
	}
	raw, err := json.Marshal(map[string]string{"task": task})
	if err != nil {
		return nil, fmt.Errorf("activities: encode task: %w", err)
	}
	return raw, nil
}

// requestApproval configures the narrator for an approve step: the step's rule gates the call of
// the reserved tool pipeline.ApproveTool. The message for approvers is stored in the record.
func (a *advancer) requestApproval(n *narration.Narrator, do pipeline.Action) error {
	d, err := pipeline.Rules(a.definition, do.Path)
	if err != nil {
		return err
	}
	a.stored.Question, a.next.Prompts = do.Approve.Message, true
	n.OfferOnly(pipeline.ApproveTool)
	n.Gate = func(_, arguments string) *runs.Approval { return approval(d, 0, arguments) }
	return nil
}

// offer configures the narrator with the tools, subagents, client tools and approval rules of the
// pipeline's agent, as CallModel does for a model's calls. The error is a lackingError if a tool of
// the agent is missing.
func (a *advancer) offer(ctx context.Context, n *narration.Narrator) (err error) {
	ours, err := a.activities.offer(ctx, a.definition)
	if err != nil {
		return err
	}
	n.SetSpecs(ours)
	offered := specsOf(ours)
	delegates, err := a.activities.delegates(ctx, a.definition, a.in.Child)
	if err != nil {
		return err
	}
	offered, n.Subagents = narration.OfferSubagents(offered, delegates)
	n.Offer(offered)
	if a.in.Child == nil {
		if n.Clients, err = a.activities.clientTools(ctx, a.definition, a.thread, offered); err != nil {
			return err
		}
	}
	n.Gate, err = a.activities.gate(ctx, a.definition, a.thread)
	return err
}

// mayAsk bounds how many branches run concurrently if they may need human input: the interrupts of
// all of them must fit into one payload.
const mayAsk = 8

// takeBranches begins the branches of a parallel or map step. The record keeps their items. It also
// checks the tenant's day, because branches cannot ask people: next.Exceeded is set if people have
// to approve more before the branches begin.
func (a *advancer) takeBranches(ctx context.Context, do pipeline.Action) (err error) {
	b := do.Branches
	f := &runs.Branches{Path: do.Path, Names: b.Names, Count: b.Count, Concurrency: max(1, min(b.AtOnce, b.Count)), StopOnFailure: b.Stop, Deadline: do.Deadline}
	if len(a.definition.Approvals) > 0 || pipeline.Asks(a.definition, do.Path) {
		f.Concurrency = min(f.Concurrency, mayAsk)
	}
	step := pipeline.StepAt(a.definition, do.Path)
	// Branches that compensate (b.Ends) are not compensated themselves.
	f.Compensates = b.Ends == nil && step.Compensates()
	a.next.Branches, a.stored.Items, a.stored.Ends = f, b.Items, b.Ends
	if a.in.Day == nil || !callsModel(step) {
		return nil
	}
	// A hard budget that is used up is not the failure of this step: the first branch that calls a
	// model fails with it.
	if a.next.Exceeded, err = a.activities.dayBeyond(ctx, a.in.Run.Tenant, a.in.Day); errors.Is(err, budget.ErrExceeded) {
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
