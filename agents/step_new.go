package agents

import "reflect"

// Ask returns a step that runs an agent: another one by name, or an inline one. input is a
// template, and the agent gets it instead of the conversation. If input is empty, the agent gets
// the conversation.
//
// If T is a string or any, the output is the agent's text. Otherwise the answer must be JSON of the
// schema of T: fields have their json names, a jsonschema tag is the description of a field, and
// fields without omitempty or omitzero are required. Lists are never null.
func Ask[T any](name string, agent AgentStep, input string, options ...AskOption) StepOf[T] {
	s := Step{Name: name, Agent: &agent, Input: input}
	if t := reflect.TypeFor[T](); t.Kind() != reflect.String && t.Kind() != reflect.Interface {
		s.Output = outputOf(t)
	}
	for _, o := range options {
		o.applyToAsk(&s)
	}
	return stepOf[T](s)
}

// Call returns a step that calls a tool of the agent. T is the type of the tool's result: a string,
// or the type of its JSON.
func Call[T any](name, tool string, args Args, options ...Option) StepOf[T] {
	return stepOf[T](withOptions(Step{Name: name, Tool: tool, Args: args.templates()}, options))
}

// Answer is the output of [Approve]: an approver's decision.
type Answer struct {
	Approved bool   `json:"approved"`
	Decision string `json:"decision"` // approve, edit, reject, answer, or expired
	By       string `json:"by"`       // subject of the approver; missing if unknown
	Reason   string `json:"reason"`   // missing if there is none
	Content  string `json:"content"`  // missing if there is none

	// Args are the arguments that were shown, with the edits of approvers.
	Args map[string]any `json:"args"`
}

// Approve returns a step that asks an approver. message is a template. [Args] are shown with it. An
// [Approval] as option sets who decides, and until when.
func Approve(name, message string, options ...ApproveOption) StepOf[Answer] {
	s := Step{Name: name, Approve: &ApproveStep{Message: message}}
	for _, o := range options {
		o.applyToApprove(&s)
	}
	return stepOf[Answer](s)
}

// Set returns a step that changes the state: all operations, or none if one fails. Values may be
// references.
func Set(name string, ops []Op, options ...Option) Step {
	s := Step{Name: name, Set: make([]Op, len(ops))}
	for i, o := range ops {
		o.Value = templates(o.Value)
		s.Set[i] = o
	}
	return withOptions(s, options)
}

// withOptions applies options to a step.
func withOptions(s Step, options []Option) Step {
	for _, o := range options {
		o.apply(&s)
	}
	return s
}
