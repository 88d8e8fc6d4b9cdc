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

// condition checks an expression whose value must be a boolean; "" = there is none.
func (t *treeCheck) condition(key, source string, sc scope) {
	if source == "" {
		return
	}
	if e := t.expression(key, source, sc); e != nil && !e.MayBeBool() {
		t.report(key, "must be true or false")
	}
}

// expression compiles an expression and checks the steps that it refers to; nil = it is invalid.
func (t *treeCheck) expression(key, source string, sc scope) *expression.Expression {
	e, err := expression.Compile(source, sc.variables...)
	if err != nil {
		t.report(key, "is not a valid expression: %s%s", err, t.hint(source, true))
		return nil
	}
	t.refers(key, "", e.Steps(), sc)
	return e
}

// assignment matches a single =. CEL has no assignment, so the author probably means ==.
var assignment = regexp.MustCompile(`[^=!<>]=([^=]|$)`)

// hint returns the probable meaning of a text that cannot be parsed, for the error; "" = none is
// likely. alone means that the text is an expression, not a template.
func (t *treeCheck) hint(source string, alone bool) string {
	if alone && strings.Contains(source, "${") {
		return " (write the expression without ${ and })"
	}
	if alone && assignment.MatchString(source) {
		return " (use == to compare)"
	}
	for _, name := range slices.Sorted(maps.Keys(t.known)) {
		if strings.Contains(name, "-") && strings.Contains(source, "steps."+name) {
			return fmt.Sprintf(" (did you mean steps[%q]?)", name)
		}
	}
	return ""
}

// template checks a template that is the value of a key.
func (t *treeCheck) template(key, source string, sc scope) { t.templateIn(key, "", source, sc) }

// templateIn checks a template at the position at in the value of a key.
func (t *treeCheck) templateIn(key, at, source string, sc scope) {
	if len(source) > maxInstructions {
		t.reportIn(key, at, "must be at most %d bytes, not %d", maxInstructions, len(source))
		return
	}
	found, err := expression.ParseTemplate(source, sc.variables...)
	if err != nil {
		t.reportIn(key, at, "is not a valid template: %s%s", err, t.hint(source, false))
		return
	}
	t.refers(key, at, found.Steps(), sc)
}

// reportIn adds a mistake at a position in the value of a key.
func (t *treeCheck) reportIn(key, at, format string, args ...any) {
	t.found = append(t.found, mistake{key, -1, key + at + " " + fmt.Sprintf(format, args...)})
}

// value checks all templates in a JSON value.
func (t *treeCheck) value(key string, value any, sc scope) {
	if _, err := json.Marshal(value); err != nil {
		t.report(key, "has no JSON form: %s", err)
		return
	}
	expression.Each(value, func(at, text string) { t.templateIn(key, at, text, sc) })
}

// object is value for an object; nil = there is none.
func (t *treeCheck) object(key string, object map[string]any, sc scope) {
	if object != nil {
		t.value(key, object, sc)
	}
}

// refers reports references to steps whose output cannot exist at this point.
func (t *treeCheck) refers(key, at string, names []string, sc scope) {
	for _, name := range names {
		k, ok := t.known[name]
		ran := sc.undoing || slices.Contains(sc.ran, name)
		switch {
		case t.open && !k.bare:
		case !ok:
			t.reportIn(key, at, "refers to steps.%s, and there is no such step%s", name, suggestion(name, slices.Sorted(maps.Keys(t.known))))
		case k.bare:
			t.reportIn(key, at, "refers to steps.%s, and that step has no output of its own", name)
		case !ran && k.group != "":
			t.reportIn(key, at, "refers to steps.%s, which has one output for each item, in the list steps.%s", name, k.group)
		case !ran:
			t.reportIn(key, at, "refers to steps.%s, and that step cannot have run yet", name)
		}
	}
}
