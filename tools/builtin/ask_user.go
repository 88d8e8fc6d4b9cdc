package builtin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/tools"
)

// userQuestion is the type of the arguments of ask_user. Choices and Schema exclude each other.
type userQuestion struct {
	Question string         `json:"question" jsonschema:"what to ask, with all that is needed to answer it"`
	Choices  []string       `json:"choices,omitempty" jsonschema:"the possible answers, if there are few"`
	Schema   map[string]any `json:"schema,omitempty" jsonschema:"a JSON Schema of type object with what is to be filled in, if it is more than one answer"`
}

// AskUser returns the tool ask_user, with which a model asks the user a question. The run waits for
// the answer.
func AskUser() tools.Tool {
	return tools.Func("ask_user", "Asks the user a question and returns the answer. Use it when you need information that only the user has.",
		askUser, tools.Idempotent())
}

// askUser asks for a text or for one of the choices. The result is the answer itself, not JSON.
func askUser(ctx context.Context, in userQuestion) (string, error) {
	if len(in.Schema) > 0 {
		return askForm(ctx, in)
	}
	property := map[string]any{"type": "string"}
	if len(in.Choices) > 0 {
		property["enum"] = in.Choices
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "required": []string{"answer"}, "properties": map[string]any{"answer": property}})
	if err != nil {
		return "", err
	}
	answer, err := tools.Ask[struct {
		Answer string `json:"answer"`
	}](ctx, tools.Question{Message: in.Question, ResponseSchema: schema})
	return answer.Answer, err
}

// askForm asks for an answer that matches the schema in the call. The result is its JSON.
func askForm(ctx context.Context, in userQuestion) (string, error) {
	if len(in.Choices) > 0 {
		return "", errors.New("set either choices or a schema")
	}
	schema, err := json.Marshal(in.Schema)
	if err != nil {
		return "", err
	}
	answer, err := tools.AskJSON(ctx, tools.Question{Message: in.Question, ResponseSchema: schema})
	return string(answer.Content), err
}

// confirmation is the type of the arguments of confirm.
type confirmation struct {
	Question string `json:"question" jsonschema:"what to confirm, with all that is needed to decide"`
}

// confirmed is the type of the result of confirm.
type confirmed struct {
	Approved bool `json:"approved"`
}

// Confirm returns the tool confirm, with which a model asks the user a yes-or-no question.
// Declining to answer counts as no.
func Confirm() tools.Tool {
	ask := func(ctx context.Context, in confirmation) (confirmed, error) {
		yes, err := tools.Confirm(ctx, in.Question)
		return confirmed{Approved: yes}, err
	}
	return tools.Func("confirm", "Asks the user to confirm before you continue.", ask, tools.Idempotent())
}
