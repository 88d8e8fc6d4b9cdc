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

// leaf returns a step that is about to begin.
func (w *walker) leaf(do pipeline.Action) *runs.ActiveStep {
	return &runs.ActiveStep{
		AgentRef: runs.AgentRef{Agent: w.in.Agent, Revision: w.in.Revision, Limits: runs.LimitsOfSubagent(w.definition.Limits)},
		Place:    runs.StepPlace{Path: do.Path, Name: do.Name, Scope: w.scope(do.Path), Tree: w.in.Position.Tree},
		Deadline: do.Deadline,
	}
}

// scope marks the messages of a step, in whichever run. The same steps may run for several calls of
// a run: their agents do not see each other's messages.
func (w *walker) scope(at string) string {
	origin := w.place.Run
	origin.ID = w.in.Position.Origin
	if home := w.in.Position.Cursor.Home; home != "" {
		at = home + "/" + at
	}
	return origin.Identify("step", at)
}

// takeAgent begins the agent of a step, or sends its invalid answer back. An agent with steps, or a
// program, is called like a subagent.
func (w *walker) takeAgent(ctx context.Context, do pipeline.Action) error {
	if was := w.in.Position.Active; do.Agent.Repair != "" && was != nil && was.CallID == "" {
		w.next.Active, w.next.Prompts = was, true
		w.kept.Prompt, w.kept.Behind = do.Agent.Repair, w.in.Position.Answered
		return nil
	}
	leaf := w.leaf(do)
	if do.Agent.Name == "" {
		d, err := pipeline.Inline(w.definition, do.Path)
		if err != nil {
			return err
		}
		leaf.Place.Inline, leaf.Limits = true, runs.LimitsOfSubagent(d.Limits)
		own := pipeline.StepAt(w.definition, do.Path).Agent.Limits // limits that are left out are those of the run
		leaf.Limits.Tokens, leaf.Limits.Cost = own.Tokens, int64(own.Cost)
	} else {
		p, err := w.activities.Agents.Latest(ctx, do.Agent.Name)
		if errors.Is(err, catalog.ErrUnknownAgent) {
			return w.activities.lacking(ctx, err)
		}
		if err != nil {
			return err
		}
		if len(p.Steps) > 0 || p.Workflow != "" {
			if b := w.in.Child; b != nil && b.Depth+1 >= runs.MaxDepth {
				return errTooDeep
			}
			return w.takeCall(ctx, do, delegateOf(p))
		}
		leaf.AgentRef = runs.AgentRef{Agent: do.Agent.Name, Revision: p.Revision, Limits: runs.LimitsOfSubagent(p.Limits)}
	}
	w.next.Active = leaf
	w.storeModelInput(do.Agent)
	return nil
}

// storeModelInput stores what the agent is asked, and which agent's step defines its answer.
func (w *walker) storeModelInput(do *pipeline.Agent) {
	if do.Prompt != nil {
		w.kept.Prompt, w.next.Active.Place.Isolated = *do.Prompt, true
	}
	if do.Schema != nil && do.Name != "" {
		w.kept.Agent, w.kept.Revision = w.in.Agent, w.in.Revision
	}
	w.next.Prompts = do.Prompt != nil || w.kept.Agent != ""
}

// errTooDeep tells that subagents would nest too deep.
var errTooDeep = errors.New("activities: too many agents work for one another")

// takeCall begins the tool call or the approval of a step: as the only call of a message, like a
// model's. to is the subagent of an agent step.
func (w *walker) takeCall(ctx context.Context, do pipeline.Action, to ...narration.Delegate) error {
	n := narration.New(w.place.Run, w.in.ID, nil)
	leaf := w.leaf(do)
	var tool string
	var arguments []byte
	var err error
	switch {
	case do.Approve != nil:
		tool, arguments, leaf.Place.Inline = pipeline.ApproveTool, do.Approve.Args, true
		err = w.requestApproval(n, do)
	case do.Agent != nil:
		tool, n.Delegates = do.Agent.Name, to
		n.OfferOnly(tool)
		arguments, err = w.task(do.Agent)
	default:
		step := pipeline.StepAt(w.definition, do.Path)
		leaf.OutlastsCancel = step != nil && step.Compensate != nil && w.next.Cursor.Undoing == nil
		tool, arguments = do.Tool.Tool, do.Tool.Args
		err = w.offer(ctx, n)
	}
	if err != nil {
		return err
	}
	callID, events, told, err := n.Propose(tool, string(arguments))
	if err != nil {
		return err
	}
	w.result.Messages, w.result.ProviderIDs, w.result.Scope = told.Messages, told.ProviderIDs, leaf.Place.Scope
	leaf.CallID, w.next.Active, w.next.Answer = callID, leaf, &n.Answer
	w.tell(events...)
	return nil
}

// task encodes the task of a subagent: its prompt, or the user's last message.
func (w *walker) task(do *pipeline.Agent) ([]byte, error) {
	task := w.said
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

// requestApproval makes the call an approval.
func (w *walker) requestApproval(n *narration.Narrator, do pipeline.Action) error {
	d, err := pipeline.Rules(w.definition, do.Path)
	if err != nil {
		return err
	}
	w.kept.Question, w.next.Prompts = do.Approve.Message, true
	n.OfferOnly(pipeline.ApproveTool)
	n.Gate = func(_, arguments string) *runs.Approval { return approval(d, 0, arguments) }
	return nil
}

// offer sets the tools, subagents and approval rules of the agent.
func (w *walker) offer(ctx context.Context, n *narration.Narrator) (err error) {
	a := w.activities
	ours, err := a.offer(ctx, w.definition)
	if err != nil {
		return err
	}
	n.Place(ours)
	offered := specsOf(ours)
	delegates, err := a.delegates(ctx, w.definition, w.in.Child)
	if err != nil {
		return err
	}
	offered, n.Delegates = narration.OfferDelegates(offered, delegates)
	n.Offer(offered)
	if w.in.Child == nil {
		if n.Clients, err = a.clientTools(ctx, w.definition, w.thread, offered); err != nil {
			return err
		}
	}
	n.Gate, err = a.gate(ctx, w.definition, w.thread)
	return err
}

// mayAsk bounds how many branches run concurrently if they may need human input: the interrupts of
// all have to fit into one payload.
const mayAsk = 8

func (w *walker) takeBranches(ctx context.Context, do pipeline.Action) (err error) {
	b := do.Branches
	f := &runs.Branches{Path: do.Path, Names: b.Names, Count: b.Count, Concurrency: max(1, min(b.AtOnce, b.Count)), StopOnFailure: b.Stop, Deadline: do.Deadline}
	if len(w.definition.Approvals) > 0 || pipeline.Asks(w.definition, do.Path) {
		f.Concurrency = min(f.Concurrency, mayAsk)
	}
	step := pipeline.StepAt(w.definition, do.Path)
	f.Compensates = b.Ends == nil && step.Compensates()
	w.next.Branches, w.kept.Items, w.kept.Ends = f, b.Items, b.Ends
	if w.in.Day == nil || !callsModel(step) {
		return nil
	}
	if w.next.Exceeded, err = w.activities.dayBeyond(ctx, w.in.Run.Tenant, w.in.Day); errors.Is(err, budget.ErrExceeded) {
		return nil // the first of the branches that calls a model fails with it
	}
	return err
}

// callsModel reports whether a step calls a model.
func callsModel(s *agents.Step) bool {
	found := false
	s.Each(func(inner *agents.Step) { found = found || inner.Agent != nil })
	return found
}
