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
	s := StepAt(d, path)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: there is no step at %q", ErrCursor, path)
	case s.Agent != nil && s.Agent.Name == "":
		return Inline(d, path)
	case s.Approve == nil:
		return d, nil
	}
	rule := s.Approve.Rule
	rule.Tools = []string{ApproveTool}
	asking := *d
	asking.Name = d.Name + "." + s.Name
	asking.Steps, asking.Tools, asking.Approvals = nil, rule.Tools, []agents.Approval{rule}
	return &asking, nil
}

// ApproveTool is the tool whose calls are questions.
const ApproveTool = "approve"
