package builtin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

// TestAskUserReturnsAnswer: a model asks a question and gets the person's answer.
func TestAskUserReturnsAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tool         tools.Tool
		args, schema string
		answer, want string
	}{
		"text":    {builtin.AskUser(), `{"question":"Who?"}`, `{"properties":{"answer":{"type":"string"}},"required":["answer"],"type":"object"}`, `{"answer":"me"}`, "me"},
		"choices": {builtin.AskUser(), `{"question":"Who?","choices":["a","b"]}`, `{"properties":{"answer":{"enum":["a","b"],"type":"string"}},"required":["answer"],"type":"object"}`, `{"answer":"a"}`, "a"},
		"form":    {builtin.AskUser(), `{"question":"Who?","schema":{"type":"object"}}`, `{"type":"object"}`, `{"x":1}`, `{"x":1}`},
		"confirm": {builtin.Confirm(), `{"question":"Who?"}`, `{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"],"additionalProperties":false}`, `{"approved":true}`, `{"approved":true}`},
	} {
		call := tools.Call{Arguments: json.RawMessage(tt.args), Asks: true}
		_, err := tt.tool.Call(t.Context(), call)
		var asks *tools.Raised
		if !errors.As(err, &asks) || asks.Message != "Who?" || string(asks.ResponseSchema) != tt.schema {
			t.Fatalf("%s: question = %v with the schema %s, want %s", name, err, asks.ResponseSchema, tt.schema)
		}
		call.Answers = []tools.Answer{{Question: asks.Digest(), Status: tools.Answered, Content: json.RawMessage(tt.answer)}}
		if result, err := tt.tool.Call(t.Context(), call); err != nil || result.IsError || result.Content != tt.want {
			t.Errorf("%s: got %+v, %v, want %s", name, result, err, tt.want)
		}
	}
	for _, args := range []string{`{"question":"Who?","schema":{"type":7}}`, `{"question":"Who?","schema":{"type":"object"},"choices":["a"]}`, `{"question":""}`} {
		result, err := builtin.AskUser().Call(t.Context(), tools.Call{Arguments: json.RawMessage(args), Asks: true})
		if err != nil || !result.IsError || strings.Contains(result.Content, "internal") {
			t.Errorf("%s: got %+v, %v, want a failed result", args, result, err)
		}
	}
}
