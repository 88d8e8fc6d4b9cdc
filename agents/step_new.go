package agents

import "reflect"

// Ask runs an agent, another one by its name or one that stands here. It is asked the input, a template, and
// knows nothing else of the conversation; without input, it sees the conversation.
//
// Where T is a text, or any, the output is what the agent says. Else it has to answer with JSON that fits
// the schema of T: fields go by their json names, a jsonschema tag is a field's description, and those without omitempty or
// omitzero are required; lists are not null.
func Ask[T any](name string, agent AgentStep, input string, options ...AskOption) StepOf[T] {
	s := Step{Name: name, Agent: &agent, Input: input}
	if t := reflect.TypeFor[T](); t.Kind() != reflect.String && t.Kind() != reflect.Interface {
		s.Output = outputOf(t)
	}
	for _, o := range options {
		o.ask(&s)
	}
	return stepOf[T](s)
}

// Call calls a tool of the agent's. T is the tool's result: a string, or what its JSON is.
func Call[T any](name, tool string, args Args, options ...Option) StepOf[T] {
	return stepOf[T](changed(Step{Name: name, Tool: tool, Args: args.templates()}, options))
}

// Answer is the output of [Approve].
type Answer struct {
	Approved bool   `json:"approved"`
	Decision string `json:"decision"` // approve, edit, reject, answer, or expired
	By       string `json:"by"`       // who said so; missing if that is not known
	Reason   string `json:"reason"`   // missing if none was given
	Content  string `json:"content"`  // missing if none was given

	// Args are those that were shown, as people have edited them.
	Args map[string]any `json:"args"`
}

// Approve asks a person. The message is a template; [Args] among the options are shown with it, and an [Approval] says
// who decides, and until when.
func Approve(name, message string, options ...ApproveOption) StepOf[Answer] {
	s := Step{Name: name, Approve: &ApproveStep{Message: message}}
	for _, o := range options {
		o.question(&s)
	}
	return stepOf[Answer](s)
}

// Set changes the state, all of it or nothing. Values may be references.
func Set(name string, ops []Op, options ...Option) Step {
	s := Step{Name: name, Set: make([]Op, len(ops))}
	for i, o := range ops {
		o.Value = templates(o.Value)
		s.Set[i] = o
	}
	return changed(s, options)
}

func changed(s Step, options []Option) Step {
	for _, o := range options {
		o.change(&s)
	}
	return s
}
