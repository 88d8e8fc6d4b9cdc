package agents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file checks the tree of a definition's steps: size, names, kinds, and order. step_kinds.go
// has the rules of each kind of step, and step_expression.go those of expressions and templates.

var (
	stepName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

	reservedNames = []string{"model", "tools", "steps"}
)

// treeCheck collects the mistakes in the steps of one definition. The checks run in this order:
// size and depth, so that the others terminate soon; names, so that references can be resolved;
// then the steps one by one.
type treeCheck struct {
	d           *Definition
	stepsByName map[string]knownStep // all names of the tree
	mistakes    []mistake
	// inProgram means that the steps are part of a program, so outputs of unknown steps may exist.
	inProgram bool
}

// knownStep is what treeCheck knows of a named step.
type knownStep struct {
	// key is the path of the step.
	key string
	// group is the map whose list has the step's output; "" = the output is steps.<name>.
	group       string
	hasNoOutput bool // the step has no output of its own
}

// stepMistakes returns the mistakes in the steps of the definition.
func (d *Definition) stepMistakes() []mistake {
	if len(d.Steps) == 0 {
		return nil
	}
	t := &treeCheck{d: d, stepsByName: map[string]knownStep{}}
	if n := t.countSteps(d.Steps, 1); n > maxTree {
		t.addMistake("steps", "must be at most %d, not %d", maxTree, n)
		return t.mistakes
	}
	if len(t.mistakes) > 0 {
		return t.mistakes
	}
	t.registerNames("steps", d.Steps, "")
	t.checkPathLengths("steps", d.Steps, 0)
	t.checkSteps("steps", d.Steps, scope{})
	t.checkResult(scope{}.after(outputsOf(d.Steps)...))
	return t.mistakes
}

// ValidateStep checks a step that the agent's program runs by the rules of files. It does not check
// whether the outputs that the step refers to exist. The error is a *DefinitionError, or several
// joined.
func (d *Definition) ValidateStep(s Step) error {
	t := &treeCheck{d: d, stepsByName: map[string]knownStep{}, inProgram: true}
	if n := t.countSteps([]Step{s}, 1); n > maxTree {
		t.addMistake("step", "must have at most %d steps, not %d", maxTree, n)
	}
	if len(t.mistakes) == 0 {
		t.registerName("step", &s, "")
		t.checkPathLengths("step", []Step{s}, 0)
		t.checkStep("step", &s, scope{})
	}
	return joined("", t.mistakes) // the caller knows the agent
}

// addMistake adds a mistake about a key.
func (t *treeCheck) addMistake(key, format string, args ...any) {
	t.mistakes = append(t.mistakes, newMistake(key, format, args...))
}

// countSteps returns the number of steps, and reports a tree that is too deep for the other checks.
// It stops when there are too many.
func (t *treeCheck) countSteps(steps []Step, depth int) int {
	if depth > maxTreeDepth {
		if len(t.mistakes) == 0 {
			t.addMistake("steps", "must be at most %d deep", maxTreeDepth)
		}
		return 0
	}
	n := len(steps)
	for _, s := range steps {
		for _, inner := range s.Inner() {
			n += t.countSteps(inner, depth+1)
		}
		if s.Compensate != nil {
			n += t.countSteps([]Step{*s.Compensate}, depth+1)
		}
		if n > maxTree {
			return n
		}
	}
	return n
}

// checkPathLengths reports steps whose paths may become too long at run time, when numbers of
// rounds, items and attempts are added. enclosing is the length of the enclosing path.
func (t *treeCheck) checkPathLengths(key string, steps []Step, enclosing int) {
	const number, mark = len("/10000"), len("~error~undo~100")
	for i := range steps {
		s, stepKey := &steps[i], fmt.Sprintf("%s[%d]", key, i)
		n := enclosing + len("/") + len(s.Name) + mark
		if s.Map != nil || s.Loop != nil {
			n += number
		}
		if n > maxPath {
			t.addMistake(stepKey, "has too long a path: the names and numbers of the path may have %d bytes", maxPath)
			continue
		}
		for _, inner := range s.Inner() {
			t.checkPathLengths(stepKey, inner, n)
		}
		if s.Compensate != nil {
			for _, inner := range s.Compensate.Inner() {
				t.checkPathLengths(stepKey, inner, n)
			}
		}
	}
}

// registerNames registers the names of a list of steps, and reports invalid and repeated ones.
// group is the enclosing map, if there is one.
func (t *treeCheck) registerNames(key string, steps []Step, group string) {
	for i := range steps {
		s, stepKey := &steps[i], fmt.Sprintf("%s[%d]", key, i)
		t.registerName(stepKey, s, group)
	}
}

// registerName registers the name of a step and of the steps in it.
func (t *treeCheck) registerName(at string, s *Step, group string) {
	first, isRepeated := t.stepsByName[s.Name]
	switch {
	case s.Name == "":
		t.addMistake(at, "needs a name")
	case !stepName.MatchString(s.Name):
		t.addMistake(at+".name", "%.80q must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter", s.Name)
	case group != "" && s.Name == "error":
		t.addMistake(at+".name", "%q is reserved: the list of a map has the failure of an item there", s.Name)
	case slices.Contains(reservedNames, s.Name):
		t.addMistake(at+".name", "%q is reserved", s.Name)
	case isRepeated:
		t.addMistake(at+".name", "%q is already the name of %s", s.Name, first.key)
	default:
		t.stepsByName[s.Name] = knownStep{key: at, group: group, hasNoOutput: s.hasNoOutput()}
	}
	t.registerInnerNames(at, s, group)
}

// registerInnerNames registers the names of the steps in a step. Compensations themselves have no
// name.
func (t *treeCheck) registerInnerNames(at string, s *Step, group string) {
	t.registerNames(at+".steps", s.Steps, group)
	t.registerNames(at+".onError.steps", s.OnError.Steps, group)
	for i, c := range s.Route {
		t.registerNames(fmt.Sprintf("%s.route[%d].steps", at, i), c.Steps, group)
	}
	if s.Parallel != nil {
		t.registerNames(at+".parallel", s.Parallel.Steps, group)
		t.addErrorOutputs(s.Parallel)
	}
	if s.Loop != nil {
		t.registerNames(at+".loop.steps", s.Loop.Steps, group)
	}
	if s.Map != nil {
		t.registerNames(at+".map.steps", s.Map.Steps, s.Name)
	}
	if s.Compensate != nil {
		t.registerInnerNames(at+".compensate", s.Compensate, group)
	}
}

// addErrorOutputs notes that branches of a parallel step with onError continue have an output:
// their error.
func (t *treeCheck) addErrorOutputs(p *ParallelStep) {
	for _, s := range p.Steps {
		if known, ok := t.stepsByName[s.Name]; ok && p.OnError == OnErrorContinue {
			known.hasNoOutput = false
			t.stepsByName[s.Name] = known
		}
	}
}

// hasNoOutput reports whether a step never has an output of its own.
func (s *Step) hasNoOutput() bool {
	return s.Agent == nil && s.Tool == "" && s.Approve == nil && s.Map == nil && !s.OnError.Continue
}

// checkSteps checks steps that run in sequence: each may refer to the outputs of those before it.
func (t *treeCheck) checkSteps(key string, steps []Step, sc scope) {
	if len(steps) == 0 {
		t.addMistake(key, "must have at least one step")
	}
	for i := range steps {
		t.checkStep(fmt.Sprintf("%s[%d]", key, i), &steps[i], sc)
		sc = sc.after(steps[i].outputs()...)
	}
}

// outputs returns the names that may have outputs after the step. The steps of a map are not among
// them, because their outputs are in the map's list.
func (s *Step) outputs() []string {
	names := []string{s.Name}
	if s.Map != nil {
		return append(names, outputsOf(s.OnError.Steps)...)
	}
	for _, inner := range s.Inner() {
		names = append(names, outputsOf(inner)...)
	}
	return names
}

// outputsOf returns the outputs of a list of steps.
func outputsOf(steps []Step) []string {
	var names []string
	for i := range steps {
		names = append(names, steps[i].outputs()...)
	}
	return names
}

// checkStep checks one step: its kind, and the keys that every kind has.
func (t *treeCheck) checkStep(at string, s *Step, sc scope) {
	t.checkCondition(at+".when", s.When, sc)
	switch kinds := s.kinds(); len(kinds) {
	case 0:
		t.addMistake(at, "must have one of %s", strings.Join(stepKinds, ", "))
		return
	case 1:
		t.checkKind(at, s, sc)
	default:
		t.addMistake(at+"."+kinds[1], "and %s exclude each other", kinds[0])
		return
	}
	t.checkFieldsOfKind(at, s)
	if len(s.OnError.Steps) > 0 {
		t.checkSteps(at+".onError.steps", s.OnError.Steps, sc.after(s.outputs()...).with("error"))
	}
	if s.Retry != nil {
		t.checkRetry(at+".retry", s.Retry)
	}
	if s.Timeout < 0 {
		t.addMistake(at+".timeout", "must be greater than zero")
	}
	if s.Compensate != nil {
		t.checkCompensation(at+".compensate", s, sc)
	}
}

// stepKinds are the keys of which a step has exactly one.
var stepKinds = []string{"agent", "tool", "approve", "parallel", "map", "route", "loop", "set", "steps"}

// Kind returns the key that makes the step one of its kind, such as "map". A step that Validate
// accepts has exactly one.
func (s *Step) Kind() string { return strings.Join(s.kinds(), "+") }

// kinds returns the kinds that a step sets.
func (s *Step) kinds() []string {
	given := []bool{
		s.Agent != nil, s.Tool != "", s.Approve != nil, s.Parallel != nil, s.Map != nil, s.Route != nil, s.Loop != nil, s.Set != nil, s.Steps != nil,
	}
	var kinds []string
	for i, kind := range stepKinds {
		if given[i] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// checkFieldsOfKind reports keys that belong to another kind of step.
func (t *treeCheck) checkFieldsOfKind(at string, s *Step) {
	if s.Agent == nil && s.Input != "" {
		t.addMistake(at+".input", "is only for agent steps")
	}
	if s.Agent == nil && s.Output != nil {
		t.addMistake(at+".output", "is only for agent steps")
	}
	if s.Hidden && s.Approve != nil {
		t.addMistake(at+".visible", "must not be false for an approve step, which people must see")
	}
	if s.Tool == "" && s.Args != nil {
		t.addMistake(at+".args", "is only for tool steps")
	}
}
