package agents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents/expression"
)

var (
	itemName = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,31}$`)
	// A pointer has no empty names: patches with them fail.
	pointerRule = regexp.MustCompile(`^(/([^~/]|~[01])+)+$`)

	patchOps = []string{"", "add", "remove", "replace", "move", "copy", "test"}
)

// checkKind checks the part of a step that depends on its kind. The step has exactly one kind.
func (t *treeCheck) checkKind(at string, s *Step, sc scope) {
	switch {
	case s.Agent != nil:
		t.checkAgent(at, s, sc)
	case s.Tool != "":
		if IsWaitTool(s.Tool) {
			t.checkWait(at, s)
		} else {
			t.checkTool(at+".tool", s.Tool)
		}
		t.checkObject(at+".args", s.Args, sc)
	case s.Approve != nil:
		t.checkApprove(at+".approve", s.Approve, sc)
	case s.Parallel != nil:
		t.checkParallel(at+".parallel", s.Parallel, sc)
	case s.Map != nil:
		t.checkMap(at+".map", s.Map, sc)
	case s.Route != nil:
		t.checkRoute(at+".route", s.Route, sc)
	case s.Loop != nil:
		t.checkLoop(at+".loop", s.Loop, sc)
	case s.Set != nil:
		t.checkOps(at+".set", s.Set, sc)
	default:
		t.checkSteps(at+".steps", s.Steps, sc)
	}
}

// checkAgent checks an agent step.
func (t *treeCheck) checkAgent(at string, s *Step, sc scope) {
	t.checkTemplate(at+".input", s.Input, sc)
	if s.Output != nil {
		t.mistakes = append(t.mistakes, s.Output.mistakes(at+".output")...)
		if s.Output.Value != "" {
			t.addMistake(at+".output.value", "is only for an agent with steps or a workflow, not for a step")
		}
	}
	a := s.Agent
	switch {
	case a.Name == "":
		t.checkInlineAgent(at+".agent", a)
	case !nameRule.MatchString(a.Name):
		t.addMistake(at+".agent", "%.80q must be the name of an agent", a.Name)
	case a.Name == t.d.Name:
		t.addMistake(at+".agent", "%q must not be the agent itself", a.Name)
	}
}

// checkInlineAgent checks an inline agent by the rules for published agents, with the pipeline's
// defaults.
func (t *treeCheck) checkInlineAgent(at string, a *AgentStep) {
	inline := t.d.Inline("", a)
	if inline.Model == "" {
		t.addMistake(at, "needs a model, in the step or in the agent")
	}
	found := textMistakes("instructions", a.Instructions, maxInstructions)
	if a.Model != "" || len(a.Fallback.Models) > 0 {
		found = append(found, modelMistakes(a.Model, a.Fallback, false)...)
	} else {
		found = append(found, a.Fallback.codeMistakes()...)
	}
	found = append(found, a.Reasoning.mistakes()...)
	found = append(found, inline.toolMistakes()...)
	found = append(found, inline.subagentMistakes()...)
	found = append(found, a.State.mistakes(a.Tools)...)
	found = append(found, a.Limits.mistakes()...)
	if a.Limits.Soft != nil {
		found = append(found, newMistake(softKey, "must be in the agent's own limits, not in a step"))
	}
	if slices.Contains(Subagents(a.Tools), t.d.Name) {
		found = append(found, newMistake("tools", "%q must not be the agent itself", AgentPrefix+t.d.Name))
	}
	for _, name := range Handoffs(a.Tools) {
		found = append(found, newMistake("tools", "%q is not available in a step: a step cannot hand over the thread", HandoffPrefix+name))
	}
	for _, m := range found {
		t.mistakes = append(t.mistakes, mistake{at + "." + m.key, m.index, at + "." + m.reason})
	}
}

// checkTool checks that a tool step calls a tool of the agent.
func (t *treeCheck) checkTool(key, name string) {
	callable, _ := SplitTools(t.d.Tools)
	callable = append(callable, Subagents(t.d.Tools)...)
	switch {
	case !toolName.MatchString(name):
		t.addMistake(key, "%.80q must be 1 to 64 letters, digits, _ and -", name)
	case !slices.ContainsFunc(callable, func(pattern string) bool { return namesTool(pattern, name) }):
		t.addMistake(key, "%q%s%s", name, notOfAgent, suggestion(name, callable))
	}
}

// notOfAgent follows the name of a step's tool that the list of tools does not have.
const notOfAgent = " is not one of the agent's tools"

// checkApprove checks an approve step.
func (t *treeCheck) checkApprove(key string, a *ApproveStep, sc scope) {
	if a.Message == "" {
		t.addMistake(key, "needs a message")
	}
	if len(a.Message) > maxMessage {
		t.addMistake(key+".message", "must be at most %d bytes, not %d", maxMessage, len(a.Message))
	}
	if len(a.Rule.Tools) > 0 || a.Rule.When != "" {
		t.addMistake(key, "must have neither tools nor when")
	}
	t.checkTemplate(key+".message", a.Message, sc)
	t.checkObject(key+".args", a.Args, sc)
	t.mistakes = append(t.mistakes, a.Rule.decisionMistakes(key)...)
}

// checkParallel checks a parallel step. No branch may refer to the output of another one.
func (t *treeCheck) checkParallel(key string, p *ParallelStep, sc scope) {
	if n := len(p.Steps); n == 0 || n > maxBranches {
		t.addMistake(key, "must have 1 to %d branches, not %d", maxBranches, n)
	}
	t.checkBranches(key, p.Concurrency, maxBranches, p.OnError)
	for i := range p.Steps {
		t.checkStep(fmt.Sprintf("%s[%d]", key, i), &p.Steps[i], sc)
	}
}

// checkBranches checks the options that parallel and map steps share.
func (t *treeCheck) checkBranches(key string, concurrency, limit int, onError string) {
	if concurrency < 0 || concurrency > limit {
		t.addMistake(key+".concurrency", "must be 1 to %d, not %d", limit, concurrency)
	}
	if onError != "" && onError != OnErrorFail && onError != OnErrorContinue {
		t.addMistake(key+".onError", "must be fail or continue, not %.80q", onError)
	}
}

// checkMap checks a map step. Its steps have two more variables: the item, and index.
func (t *treeCheck) checkMap(key string, m *MapStep, sc scope) {
	if m.Items == "" {
		t.addMistake(key, "needs items")
	} else if e := t.checkExpression(key+".items", m.Items, sc); e != nil && !e.MayBeList() {
		t.addMistake(key+".items", "must be a list")
	}
	t.checkBranches(key, m.Concurrency, maxConcurrency, m.OnError)
	item := m.Item()
	if !itemName.MatchString(item) || !expression.Free(item) || item == "index" || item == "round" || item == "error" {
		t.addMistake(key+".as", "%.80q must be 1 to 32 letters and digits, begin with a lower-case letter, and not be the name of a variable", item)
		return
	}
	t.checkSteps(key+".steps", m.Steps, sc.with(item, "index"))
}

// checkRoute checks a route step. Only the last case may have no condition.
func (t *treeCheck) checkRoute(key string, cases []Case, sc scope) {
	if n := len(cases); n == 0 || n > maxCases {
		t.addMistake(key, "must have 1 to %d cases, not %d", maxCases, n)
	}
	for i, c := range cases {
		caseKey := fmt.Sprintf("%s[%d]", key, i)
		if c.When == "" && i < len(cases)-1 {
			t.addMistake(fmt.Sprintf("%s[%d]", key, i+1), "is never reached: %s has no when", caseKey)
		}
		t.checkCondition(caseKey+".when", c.When, sc)
		t.checkSteps(caseKey+".steps", c.Steps, sc)
	}
}

// checkLoop checks a loop step. Its steps may refer to each other in any order: an output may be
// that of the round before.
func (t *treeCheck) checkLoop(key string, l *LoopStep, sc scope) {
	switch {
	case l.Max == 0:
		t.addMistake(key, "needs max, the most rounds")
	case l.Max < 0 || l.Max > maxRounds:
		t.addMistake(key+".max", "must be 1 to %d, not %d", maxRounds, l.Max)
	}
	inside := sc.with("round").after(outputsOf(l.Steps)...)
	t.checkSteps(key+".steps", l.Steps, inside)
	t.checkCondition(key+".until", l.Until, inside)
}

// checkOps checks the operations of a set step.
func (t *treeCheck) checkOps(key string, ops []Op, sc scope) {
	if n := len(ops); n == 0 || n > maxOps {
		t.addMistake(key, "must be 1 to %d changes, not %d", maxOps, n)
	}
	for i, o := range ops {
		opKey := fmt.Sprintf("%s[%d]", key, i)
		if !slices.Contains(patchOps, o.Op) {
			t.addMistake(opKey+".op", "must be one of %s, not %.80q", strings.Join(patchOps[1:], ", "), o.Op)
		}
		t.checkPointer(opKey, "path", o.Path, o.Op != "test", sc)
		if o.Op == "move" || o.Op == "copy" {
			t.checkPointer(opKey, "from", o.From, o.Op == "move", sc)
		} else if o.From != "" {
			t.addMistake(opKey+".from", "is only for move and copy")
		}
		if !o.hasValue() && o.Value != nil {
			t.addMistake(opKey+".value", "is not for %s", o.Op)
		}
		t.checkValue(opKey, o.Value, sc)
	}
}

// checkPointer checks a JSON pointer, which may be a template. isWritten means that the operation
// writes at this pointer: outputs of steps must not be written.
func (t *treeCheck) checkPointer(opKey, key, pointer string, isWritten bool, sc scope) {
	if len(pointer) > maxPath {
		t.addMistake(opKey, "%s: must be at most %d bytes, not %d", key, maxPath, len(pointer))
		return
	}
	template, err := sc.expressions().ParseTemplate(pointer)
	if err != nil {
		t.addMistake(opKey, "%s: is not a valid template: %s%s", key, err, t.stepHint(pointer))
		return
	}
	t.checkReferences(opKey, "."+key, template.Steps(), sc)
	switch outline := template.Outline("x"); {
	case !pointerRule.MatchString(outline):
		t.addMistake(opKey, "%s: %.80q must be a JSON pointer, such as /total", key, pointer)
	case isWritten && IsOutputPointer(outline):
		t.addMistake(opKey, "%s: must not be in /%s, which has the outputs of steps", key, Outputs)
	}
}

// ResolvePointer evaluates the pointer of an operation of a set step, which may be a template. The
// error says, without content, why the value is no pointer into the state, or, with isWritten, why
// it must not be written.
func ResolvePointer(pointer string, isWritten bool, sc expression.Scope, variables map[string]any) (string, error) {
	template, err := sc.ParseTemplate(pointer)
	if err != nil {
		return "", err
	}
	resolved, err := template.Pointer(variables)
	switch {
	case err != nil:
		return "", err
	case len(resolved) > maxPath || !pointerRule.MatchString(resolved):
		return "", fmt.Errorf("the path %.80q has an empty or too long part", pointer)
	case isWritten && IsOutputPointer(resolved):
		return "", fmt.Errorf("the path %.80q is in /%s, which has the outputs of steps", pointer, Outputs)
	}
	return resolved, nil
}

// Outputs is the member of the state that has the outputs of steps. Its prefix separates it from
// the members of applications; definitions cannot change it.
const Outputs = "perdure.steps"

// IsOutputPointer reports whether a JSON pointer is that of the outputs of steps, or in them.
func IsOutputPointer(pointer string) bool {
	return pointer == "/"+Outputs || strings.HasPrefix(pointer, "/"+Outputs+"/")
}

// checkRetry checks a retry policy.
func (t *treeCheck) checkRetry(key string, r *Retry) {
	if r.Attempts < 1 || r.Attempts > maxTries {
		t.addMistake(key+".attempts", "must be 1 to %d, not %d", maxTries, r.Attempts)
	}
	if r.Interval < 0 || r.Interval > maxPause {
		t.addMistake(key+".interval", "must be at most %s", maxPause)
	}
	if r.Backoff != 0 && (r.Backoff < 1 || r.Backoff > maxBackoff) {
		t.addMistake(key+".backoff", "must be 1 to %d", maxBackoff)
	}
}

// checkCompensation checks the compensation of a step. It may refer to every step, and has the
// variable error. It has neither branches nor compensations of its own.
func (t *treeCheck) checkCompensation(at string, s *Step, sc scope) {
	c := s.Compensate
	switch {
	case sc.inCompensation:
		t.addMistake(at, "must not be in a compensation")
		return
	case s.Set != nil:
		t.addMistake(at, "must not be on a set step, which changes only the state")
	case s.Compensates():
		t.addMistake(at, "is not allowed, because the step's branches have compensations already")
	}
	if c.Name != "" {
		t.addMistake(at+".name", "must not be set: a compensation has the name of its step")
	}
	if c.Parallel != nil || c.Map != nil {
		t.addMistake(at, "must not contain parallel or map")
		return
	}
	inside := sc.without("round").with("error")
	inside.inCompensation = true
	t.checkStep(at, c, inside)
	eachStep([]Step{*c}, func(inner *Step) {
		if inner.Parallel != nil || inner.Map != nil {
			t.addMistake(at, "must not contain parallel or map, as %q does", inner.Name)
		}
	})
}
