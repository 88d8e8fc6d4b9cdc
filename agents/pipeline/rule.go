package pipeline

import (
	"fmt"

	"github.com/perdure/perdure/agents"
)

// Asks reports whether the branches of an action's step may need human input.
func Asks(d *agents.Definition, path string) bool {
	s := StepAt(d, path)
	return s != nil && s.Asks()
}

// Rules returns the agent with the approval rules for the call of an action. For an approve step it
// is an agent with that rule only.
func Rules(d *agents.Definition, path string) (*agents.Definition, error) {
	if path == LimitPath {
		return limitRules(d), nil
	}
	s := StepAt(d, path)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: there is no step at %q", ErrCursor, path)
	case s.Agent != nil && s.Agent.Name == "":
		return Inline(d, path)
	case s.Approve == nil:
		return d, nil
	}
	return questioner(d, s.Name, s.Approve.Rule), nil
}

// LimitPath is the path of the interrupt about a soft limit. No step has it: names have no "~".
const LimitPath = "~limit"

// limitRules returns the rule for an interrupt about a soft limit. It has no approvers if the agent
// has no soft limits: the limit is one of the tenant then.
func limitRules(d *agents.Definition) *agents.Definition {
	var rule agents.Approval
	if s := d.Limits.Soft; s != nil {
		rule = s.Approval
	}
	return questioner(d, "limits", rule)
}

// questioner returns an agent with one approval rule, and nothing else.
func questioner(d *agents.Definition, name string, rule agents.Approval) *agents.Definition {
	rule.Tools = []string{ApproveTool}
	asking := *d
	asking.Name = d.Name + "." + name
	asking.Steps, asking.Tools, asking.Approvals = nil, rule.Tools, []agents.Approval{rule}
	return &asking
}

// ApproveTool is the name of the tool whose calls are approve steps.
const ApproveTool = "approve"
