package agents

import (
	"slices"
)

// scope is the variables of an expression besides the standard ones.
type scope struct {
	variables []string
	ran       []string // steps that may have run, so that they have outputs
	undoing   bool     // in a compensation: every step may have run
}

func (s scope) with(variables ...string) scope {
	s.variables = slices.Clone(s.variables)
	for _, name := range variables {
		if !slices.Contains(s.variables, name) {
			s.variables = append(s.variables, name)
		}
	}
	return s
}

func (s scope) without(variable string) scope {
	s.variables = slices.DeleteFunc(slices.Clone(s.variables), func(name string) bool { return name == variable })
	return s
}

func (s scope) after(names ...string) scope {
	s.ran = append(slices.Clone(s.ran), names...)
	return s
}
