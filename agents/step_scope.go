package agents

import (
	"slices"

	"github.com/perdure/perdure/agents/expression"
)

// scope has the variables of an expression beyond the standard ones, and the steps before it. Its
// methods return changed copies.
type scope struct {
	variables      []string
	mayHaveRun     []string // steps that may have run before, so their outputs may exist
	inCompensation bool     // in a compensation: every step may have run
	// isComplete means that the expression has these variables only, not the standard ones.
	isComplete bool
}

// expressions returns the variables in the form of package expression.
func (s scope) expressions() expression.Scope {
	if s.isComplete {
		return expression.ScopeOf(s.variables...)
	}
	return expression.StandardScope(s.variables...)
}

// with adds variables.
func (s scope) with(variables ...string) scope {
	s.variables = slices.Clone(s.variables)
	for _, name := range variables {
		if !slices.Contains(s.variables, name) {
			s.variables = append(s.variables, name)
		}
	}
	return s
}

// without removes a variable.
func (s scope) without(variable string) scope {
	s.variables = slices.DeleteFunc(slices.Clone(s.variables), func(name string) bool { return name == variable })
	return s
}

// after adds steps that may have run.
func (s scope) after(names ...string) scope {
	s.mayHaveRun = append(slices.Clone(s.mayHaveRun), names...)
	return s
}
