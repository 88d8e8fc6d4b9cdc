package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
	"github.com/perdure/perdure/agui"
)

// This file begins steps: enterStep checks whether a step may begin, and beginKind handles each
// kind of step. A step with an action (agent, call, approval, branches) sets it, and Advance
// returns. The others change the state or open inner steps, and Advance continues.

// enterStep begins a step or its next try. A step whose condition does not hold is skipped: clients
// do not see it, and it has no output. The condition is not evaluated again for a further try.
func (in *interpreter) enterStep(p openStep) {
	isRetry := p.frame.Try > 0
	if !isRetry && p.step.When != "" {
		isTrue, f := in.evaluateCondition(p, "when", p.step.When)
		if f == nil && !isTrue {
			in.goToSibling(p)
			return
		}
		if f != nil {
			in.addChange(Change{Started: p.name})
			in.failInnermost(*f)
			return
		}
	}
	in.addChange(Change{Started: p.name})
	f := in.top()
	switch {
	case !isRetry && p.step.Timeout > 0:
		f.Deadline = in.env.Now.Add(p.step.Timeout)
	case isRetry && !f.Deadline.IsZero() && !in.env.Now.Before(f.Deadline):
		in.failInnermost(newFailure("timeout", "step %q took longer than %s", p.name, p.step.Timeout))
		return
	}
	// Checked before the step has an effect: the position must have room to note it for
	// compensation.
	if in.compensates(p) && in.compensationSize()+2*len(p.path)+recordBytes > maxUndo {
		in.failInnermost(newFailure("limit_compensations", "step %q: too many steps need compensation", p.name))
		return
	}
	in.beginKind(p)
}

// beginKind does what the kind of a step requires. docs/internals/architecture.md lists the other
// places of a new kind.
func (in *interpreter) beginKind(p openStep) {
	s := p.step
	switch {
	case s.Agent != nil:
		in.startAgent(p, "")
	case s.Tool != "":
		in.startToolCall(p)
	case s.Approve != nil:
		in.startApproval(p)
	case s.Set != nil:
		in.applySet(p)
	case s.Steps != nil:
		in.enterFirst(s.Steps)
	case s.Route != nil:
		in.enterCase(p)
	case s.Loop != nil:
		in.top().Round = 1
		in.enterFirst(s.Loop.Steps)
	case s.Parallel != nil || s.Map != nil:
		in.enterBranches(p)
	default:
		in.failInnermost(newFailure("invalid_step", "step %q has no kind", p.name))
	}
}

// setAction sets the action of a step, which ends this Advance.
func (in *interpreter) setAction(p openStep, a Action) {
	a.Path, a.Name, a.Deadline = p.path, p.name, in.deadline()
	in.action = &a
}

// startAgent sets the action that runs an agent with the step's input. repair sends an invalid
// answer back with the validation errors; "" = the agent begins.
func (in *interpreter) startAgent(p openStep, repair string) {
	s := p.step
	a := &Agent{Name: s.Agent.Name, Repair: repair}
	if s.Input != "" {
		prompt, f := in.evaluateText(p, "input", s.Input)
		if f != nil {
			in.failInnermost(*f)
			return
		}
		a.Prompt = &prompt
	}
	if s.Output != nil {
		a.Schema = s.Output.Schema
	}
	in.setAction(p, Action{Agent: a})
}

// startToolCall sets the action that calls a tool with the step's arguments.
func (in *interpreter) startToolCall(p openStep) {
	args, f := in.evaluateArguments(p, "args", p.step.Args)
	if f != nil {
		in.failInnermost(*f)
		return
	}
	in.setAction(p, Action{Tool: &Call{Tool: p.step.Tool, Args: args}})
}

// startApproval sets the action that asks approvers, with the step's message and arguments.
func (in *interpreter) startApproval(p openStep) {
	a := p.step.Approve
	message, f := in.evaluateText(p, "approve.message", a.Message)
	if f != nil {
		in.failInnermost(*f)
		return
	}
	args, f := in.evaluateArguments(p, "approve.args", a.Args)
	if f != nil {
		in.failInnermost(*f)
		return
	}
	in.setAction(p, Action{Approve: &Call{Message: message, Args: args, Rule: &a.Rule}})
}

// evaluateArguments evaluates the arguments under a key of a step, and returns them as a JSON
// object of at most agents.MaxOutput bytes. The failure names the key.
func (in *interpreter) evaluateArguments(p openStep, key string, args map[string]any) (json.RawMessage, *Failure) {
	if args == nil {
		return json.RawMessage("{}"), nil
	}
	variables := in.variables()
	filled, err := expression.Fill(args, variables, extraNames(variables)...)
	if err != nil {
		return nil, invalidExpression(p, key, err)
	}
	raw, err := expression.Encode(filled)
	if err != nil {
		return nil, invalidExpression(p, key, err)
	}
	if len(raw) > agents.MaxOutput {
		return nil, new(newFailure("input_too_large", "step %q: %s has more than %d bytes", p.name, key, agents.MaxOutput))
	}
	return raw, nil
}

// enterCase enters the first case whose condition holds, or ends the step if none does.
func (in *interpreter) enterCase(p openStep) {
	for i, c := range p.step.Route {
		isTrue := c.When == ""
		if !isTrue {
			var f *Failure
			if isTrue, f = in.evaluateCondition(p, fmt.Sprintf("route[%d].when", i), c.When); f != nil {
				in.failInnermost(*f)
				return
			}
		}
		if isTrue {
			in.top().Case = i
			in.enterFirst(c.Steps)
			return
		}
	}
	in.transition = leaving
}

// applySet applies the operations of a set step to the state, in order. If one fails, it restores
// the state, and the step fails.
func (in *interpreter) applySet(p openStep) {
	// A failure restores these. The state is replaced as a whole, so its earlier value is intact.
	state, changes := in.env.State, len(in.changes)
	in.hasSet = true
	for i, o := range p.step.Set {
		f := in.applySetOperation(p, i, o)
		if f == nil {
			continue
		}
		in.env.State, in.changes, in.variableCache = state, in.changes[:changes], nil
		in.failInnermost(*f)
		return
	}
	in.transition = leaving
}

// applySetOperation applies one operation of a set step. Its value sees the changes of the
// operations before it.
func (in *interpreter) applySetOperation(p openStep, i int, o agents.Op) *Failure {
	key := fmt.Sprintf("set[%d]", i)
	variables := in.variables()
	operation, err := operationOf(o, in.env.State, expression.StandardScope(extraNames(variables)...), variables)
	if err != nil {
		return invalidExpression(p, key, err)
	}
	if operation == nil {
		return nil
	}
	if len(operation) > agents.MaxOutput {
		return new(newFailure("output_too_large", "step %q: %s has more than %d bytes", p.name, key, agents.MaxOutput))
	}
	if in.applyPatch(patchOf(operation)) != nil {
		return new(newFailure("invalid_patch", "step %q: %s does not apply at %s", p.name, key, o.Path))
	}
	return nil
}

// applyPatch changes the state by a JSON Patch, and adds the change for clients.
func (in *interpreter) applyPatch(patch json.RawMessage) error {
	state := in.env.State
	if len(state) == 0 {
		state = json.RawMessage("null")
	}
	changed, err := agui.Patch(state, patch)
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	in.env.State, in.variableCache = changed, nil
	in.addChange(Change{Patch: patch})
	return nil
}

// invalidExpression returns the failure of an expression. It names the step and the key; the errors
// of package expression have no content.
func invalidExpression(p openStep, key string, err error) *Failure {
	return new(newFailure("invalid_expression", "step %q: %s: %s", p.name, key, err))
}

// enterBranches sets the action that runs branches in parallel. A step without branches (a map of
// no items) has ended.
func (in *interpreter) enterBranches(p openStep) {
	b, f := in.branches(p)
	switch {
	case f != nil:
		in.failInnermost(*f)
	case b.Count == 0:
		in.transition = leaving
	default:
		in.setAction(p, Action{Branches: b})
	}
}

// branches returns the branches of a parallel or map step, or those that compensate its finished
// ones. A map's items are evaluated here, once: branches and compensation read them from the record
// of this advance.
func (in *interpreter) branches(p openStep) (*Branches, *Failure) {
	if in.compensatesBranches(p) {
		return in.compensatingBranches(p)
	}
	if s := p.step.Parallel; s != nil {
		b := &Branches{Count: len(s.Steps), Concurrency: s.ConcurrencyOrDefault(), Stop: s.OnError != agents.OnErrorContinue}
		for _, branch := range s.Steps {
			b.Names = append(b.Names, branch.Name)
		}
		return b, nil
	}
	m := p.step.Map
	items, err := in.evaluateItems(m)
	if err != nil {
		return nil, invalidExpression(p, "map.items", err)
	}
	limit := agents.MaxItems
	if p.step.Compensates() {
		limit = agents.MaxItemsCompensated
	}
	if len(items) > limit {
		return nil, new(newFailure("limit_items", "step %q: map.items has more than %d items", p.name, limit))
	}
	b := &Branches{Items: make([]json.RawMessage, len(items)), Count: len(items), Concurrency: m.ConcurrencyOrDefault(), Stop: m.OnError != agents.OnErrorContinue}
	for i, item := range items {
		if b.Items[i], err = expression.Encode(item); err != nil {
			return nil, invalidExpression(p, "map.items", err)
		}
	}
	// Each item has an object from the beginning: concurrent branches of an item add to it, and do
	// not replace each other's outputs.
	in.put(p.step.Name, slices.Repeat([]any{map[string]any{}}, len(items)))
	return b, nil
}

// compensatingBranches returns the branches that compensate finished ones. They have the items with
// which those ran, and not those that the expression would give now. They do not stop each other.
func (in *interpreter) compensatingBranches(p openStep) (*Branches, *Failure) {
	d := in.compensatedDone()
	b := &Branches{Items: d.Items, Ends: d.Ends, Count: len(d.Ends)}
	if s := p.step.Parallel; s != nil {
		b.Concurrency = s.ConcurrencyOrDefault()
		for _, branch := range s.Steps {
			b.Names = append(b.Names, branch.Name)
		}
		return b, nil
	}
	b.Concurrency = p.step.Map.ConcurrencyOrDefault()
	return b, nil
}

// evaluateItems evaluates the items of a map.
func (in *interpreter) evaluateItems(m *agents.MapStep) ([]any, error) {
	variables := in.variables()
	e, err := expression.Compile(m.Items, extraNames(variables)...)
	if err != nil {
		return nil, err
	}
	return e.List(variables)
}
