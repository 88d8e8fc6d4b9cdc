package pipeline

import (
	"fmt"

	"github.com/perdure/perdure/agents"
)

// Asks reports whether the branches of an action's step may have approve steps. It is false if
// there is no step at the path.
func Asks(d *agents.Definition, path string) bool {
	s := StepAt(d, path)
	return s != nil && s.Asks()
}

// Rules returns an agent whose approval rules apply to the call of an action: the inline agent of
// the step, an agent with only the rule of an approve step, of the soft limits or of a remote agent's
// interrupts, or else d itself.
func Rules(d *agents.Definition, path string) (*agents.Definition, error) {
	if path == LimitPath {
		return limitRules(d), nil
	}
	if path == RemotePath && d.Remote != nil {
		return withOnlyRule(d, "remote", d.Remote.Interrupts), nil
	}
	s := StepAt(d, path)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: there is no step at %q", ErrPosition, path)
	case s.Agent != nil && s.Agent.Name == "":
		return Inline(d, path)
	case s.Approve == nil:
		return d, nil
	}
	return withOnlyRule(d, s.Name, s.Approve.Rule), nil
}

// LimitPath is the path of the interrupt about a soft limit. No step has it: names have no "~".
const LimitPath = "~limit"

// RemotePath is the path of the interrupts of a remote agent. No step has it.
const RemotePath = "~remote"

// limitRules returns an agent with the rule for an interrupt about a soft limit. The rule has no
// approvers if the agent has no soft limits: then the limit is one of the tenant's day.
func limitRules(d *agents.Definition) *agents.Definition {
	var rule agents.Approval
	if s := d.Limits.Soft; s != nil {
		rule = s.Approval
	}
	return withOnlyRule(d, "limits", rule)
}

// withOnlyRule returns a copy of an agent with one approval rule, for ApproveTool, and no steps.
// Its name is that of the agent and the step.
func withOnlyRule(d *agents.Definition, name string, rule agents.Approval) *agents.Definition {
	rule.Tools = []string{ApproveTool}
	copied := *d
	copied.Name = d.Name + "." + name
	copied.Steps, copied.Tools, copied.Approvals = nil, rule.Tools, []agents.Approval{rule}
	return &copied
}

// ApproveTool is the name of the tool whose calls are approve steps and questions about soft
// limits.
const ApproveTool = "approve"
