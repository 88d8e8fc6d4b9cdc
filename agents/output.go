package agents

import (
	"fmt"
	"reflect"

	"github.com/perdure/perdure/agents/expression"
)

// This file checks the output of a whole agent. answer.go reads answers by the output of an agent or
// a step.

// OutputOf returns the output of an agent whose answer has the schema of T, as in [Ask].
//
//	d := agents.Definition{
//		Name: "planner", Model: "openai/gpt-5-mini", Output: agents.OutputOf[Plan](),
//	}
func OutputOf[T any](options ...OutputOption) *Output {
	o := outputOf(reflect.TypeFor[T]())
	for _, option := range options {
		option.applyToOutput(o)
	}
	return o
}

// ResultValue returns the CEL expression of the result of an agent with steps or a program: Value, or
// the output of the last step. "" = there is none.
func (d *Definition) ResultValue() string {
	switch {
	case d.Output == nil:
		return ""
	case d.Output.Value != "" || len(d.Steps) == 0:
		return d.Output.Value
	}
	last := &d.Steps[len(d.Steps)-1]
	if last.Agent == nil && last.Tool == "" && last.Approve == nil && last.Map == nil {
		return ""
	}
	return fmt.Sprintf("steps[%q]", last.Name)
}

// mistakes returns the mistakes in the schema and the repairs. at is the key of the output.
func (o *Output) mistakes(at string) (found []mistake) {
	if err := o.compile(); err != nil {
		found = append(found, newMistake(at+".schema", "is not a valid JSON Schema: %s", err))
	}
	if n := o.MaxRepairs(); n < 0 || n > maxRepairs {
		found = append(found, newMistake(at+".repairs", "must be 0 to %d, not %d", maxRepairs, n))
	}
	return found
}

// outputMistakes returns the mistakes in the output of the agent, except for the steps to which its
// value refers (checkResult).
func (d *Definition) outputMistakes() []mistake {
	o := d.Output
	switch {
	case o == nil:
		return nil
	case len(d.Steps) == 0 && d.Workflow == "":
		found := o.mistakes("output")
		if o.Value != "" {
			found = append(found, newMistake("output.value", "is only for an agent with steps or a workflow: the result of this one is its last answer; remove it"))
		}
		return found
	}
	var found []mistake
	if len(o.Schema) > 0 || o.schemaErr != nil {
		found = append(found, (&Output{Schema: o.Schema, schemaErr: o.schemaErr}).mistakes("output")...)
	}
	if o.Repairs != nil {
		found = append(found, newMistake("output.repairs", "is only for an agent with a model or a remote: nothing can repair the result of steps or a workflow; set it in the output of a step"))
	}
	if o.Native != nil {
		found = append(found, newMistake("output.native", "is only for an agent with a model; set it in the output of a step"))
	}
	switch {
	case o.Value == "" && len(o.Schema) == 0 && o.schemaErr == nil && d.ResultValue() != "":
		found = append(found, newMistake("output", "must have a schema or a value: without both it requires nothing; add one, or remove the output"))
	case d.ResultValue() != "":
	case d.Workflow != "":
		found = append(found, newMistake("output.value", "must be set: the expression of the result of the program"))
	default:
		found = append(found, newMistake("output.value", "must be set: the last step has no output of its own"))
	}
	if d.Workflow != "" && o.Value != "" {
		if _, err := expression.Compile(o.Value); err != nil {
			found = append(found, newMistake("output.value", "is not a valid expression: %s", err))
		}
	}
	return found
}

// checkResult checks the expression of the agent's result. All steps have run by then.
func (t *treeCheck) checkResult(sc scope) {
	if o := t.d.Output; o != nil && o.Value != "" {
		t.checkExpression("output.value", o.Value, sc)
	}
}
