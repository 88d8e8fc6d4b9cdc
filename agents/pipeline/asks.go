package pipeline

import (
	"fmt"

	"github.com/perdure/perdure/agents"
)

// Asks tells whether people may be asked in the branches of the step of an action.
func Asks(d *agents.Definition, path string) bool {
	s := StepAt(d, path)
	return s != nil && s.Asks()
}

// Rules is the agent by whose rules the call of an action is judged: of a question, one that has its rule alone.
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

// LimitPath stands for the path of a step where people are asked about a soft limit. No step is there: names have no ~.
const LimitPath = "~limit"

// limitRules has no approvers where the agent has no soft limits: people may be asked about those of its tenant.
func limitRules(d *agents.Definition) *agents.Definition {
	var rule agents.Approval
	if s := d.Limits.Soft; s != nil {
		rule = s.Approval
	}
	return questioner(d, "limits", rule)
}

// questioner is an agent that asks people by one rule, and does nothing else.
func questioner(d *agents.Definition, name string, rule agents.Approval) *agents.Definition {
	rule.Tools = []string{ApproveTool}
	asking := *d
	asking.Name = d.Name + "." + name
	asking.Steps, asking.Tools, asking.Approvals = nil, rule.Tools, []agents.Approval{rule}
	return &asking
}

// ApproveTool is the tool whose calls are questions.
const ApproveTool = "approve"
