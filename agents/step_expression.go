package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents/expression"
)

// checkCondition checks an expression whose value must be a boolean; "" = there is none.
func (t *treeCheck) checkCondition(key, source string, sc scope) {
	if source == "" {
		return
	}
	if e := t.checkExpression(key, source, sc); e != nil && !e.MayBeBool() {
		t.addMistake(key, "must be true or false")
	}
}

// checkExpression compiles an expression and checks the steps that it refers to; nil = it is
// invalid.
func (t *treeCheck) checkExpression(key, source string, sc scope) *expression.Expression {
	e, err := sc.expressions().Compile(source)
	if err != nil {
		t.addMistake(key, "is not a valid expression: %s%s", err, t.expressionHint(source))
		return nil
	}
	t.checkReferences(key, "", e.Steps(), sc)
	return e
}

// assignment matches a single =. CEL has no assignment, so the author probably means ==.
var assignment = regexp.MustCompile(`[^=!<>]=([^=]|$)`)

// expressionHint returns the probable meaning of an expression that cannot be parsed, for the
// error; "" = none is likely.
func (t *treeCheck) expressionHint(source string) string {
	if strings.Contains(source, "${") {
		return " (write the expression without ${ and })"
	}
	if assignment.MatchString(source) {
		return " (use == to compare)"
	}
	return t.stepHint(source)
}

// stepHint returns how to refer to a step whose name has a dash, if a text that cannot be parsed
// has its name; "" = it has none.
func (t *treeCheck) stepHint(source string) string {
	for _, name := range slices.Sorted(maps.Keys(t.stepsByName)) {
		if strings.Contains(name, "-") && strings.Contains(source, "steps."+name) {
			return fmt.Sprintf(" (did you mean steps[%q]?)", name)
		}
	}
	return ""
}

// checkTemplate checks a template that is the value of a key.
func (t *treeCheck) checkTemplate(key, source string, sc scope) {
	t.checkTemplateIn(key, "", source, sc)
}

// checkTemplateIn checks a template at a position in the value of a key.
func (t *treeCheck) checkTemplateIn(key, position, source string, sc scope) {
	if len(source) > maxInstructions {
		t.addMistakeIn(key, position, "must be at most %d bytes, not %d", maxInstructions, len(source))
		return
	}
	template, err := sc.expressions().ParseTemplate(source)
	if err != nil {
		t.addMistakeIn(key, position, "is not a valid template: %s%s", err, t.stepHint(source))
		return
	}
	t.checkReferences(key, position, template.Steps(), sc)
}

// addMistakeIn adds a mistake at a position in the value of a key.
func (t *treeCheck) addMistakeIn(key, position, format string, args ...any) {
	t.mistakes = append(t.mistakes, mistake{key, -1, key + position + " " + fmt.Sprintf(format, args...)})
}

// checkValue checks all templates in a JSON value.
func (t *treeCheck) checkValue(key string, value any, sc scope) {
	if _, err := json.Marshal(value); err != nil {
		t.addMistake(key, "has no JSON form: %s", err)
		return
	}
	expression.Each(value, func(position, text string) { t.checkTemplateIn(key, position, text, sc) })
}

// checkObject is checkValue for an object; nil = there is none.
func (t *treeCheck) checkObject(key string, object map[string]any, sc scope) {
	if object != nil {
		t.checkValue(key, object, sc)
	}
}

// checkReferences reports references to steps whose output cannot exist at this point.
func (t *treeCheck) checkReferences(key, position string, names []string, sc scope) {
	for _, name := range names {
		step, ok := t.stepsByName[name]
		mayHaveRun := sc.inCompensation || slices.Contains(sc.mayHaveRun, name)
		switch {
		case t.inProgram && !step.hasNoOutput:
		case !ok:
			t.addMistakeIn(key, position, "refers to steps.%s, and there is no such step%s", name, suggestion(name, slices.Sorted(maps.Keys(t.stepsByName))))
		case step.hasNoOutput:
			t.addMistakeIn(key, position, "refers to steps.%s, and that step has no output of its own", name)
		case !mayHaveRun && step.group != "":
			t.addMistakeIn(key, position, "refers to steps.%s, which has one output for each item, in the list steps.%s", name, step.group)
		case !mayHaveRun:
			t.addMistakeIn(key, position, "refers to steps.%s, and that step cannot have run yet", name)
		}
	}
}
