package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/tools"
)

type address struct {
	City string `json:"city"`
}

// order is a tool that asks for a destination and then for a confirmation. It counts its calls.
func order(called *int) tools.Tool {
	return tools.Func("order", "Orders.", func(ctx context.Context, _ struct{}) (string, error) {
		*called++
		to, err := tools.Ask[address](ctx, tools.Question{Message: "Where to?", ExpiresIn: time.Hour, Metadata: map[string]any{"shop": 1}})
		if err != nil {
			return "", fmt.Errorf("order: %w", err)
		}
		yes, err := tools.Confirm(ctx, "To "+to.City+"?")
		return fmt.Sprint(to.City, " ", yes), err
	})
}

// answer calls a tool as the engine does: it answers each question and calls again, until the tool
// has a result.
func answer(t *testing.T, tool tools.Tool, given ...tools.Answer) (tools.Result, []tools.Raised) {
	t.Helper()
	var answers []tools.Answer
	var raised []tools.Raised
	for {
		result, err := tool.Call(t.Context(), tools.Call{Asks: true, Answers: answers})
		var asks *tools.Raised
		if !errors.As(err, &asks) {
			if err != nil {
				t.Fatal(err)
			}
			return result, raised
		}
		raised = append(raised, *asks)
		if len(given) == 0 {
			return tools.Result{}, raised
		}
		next := given[0]
		next.Question, given = asks.Digest(), given[1:]
		answers = append(answers[:asks.Index:asks.Index], next)
	}
}

// answerWith returns an answer with content.
func answerWith(content string) tools.Answer {
	return tools.Answer{Status: tools.Answered, Content: json.RawMessage(content)}
}

func TestToolAsksQuestionsInSequence(t *testing.T) {
	t.Parallel()
	called := 0
	result, raised := answer(t, order(&called), answerWith(`{"city":"Ulm"}`), answerWith(`{"approved":true}`))
	if result.Content != "Ulm true" || result.IsError || called != 3 {
		t.Errorf("got %+v after %d calls, want Ulm true after 3", result, called)
	}
	if len(raised) != 2 || raised[0].Reason != "input_required" || raised[1].Reason != "confirmation" || raised[1].Index != 1 || raised[1].Message != "To Ulm?" {
		t.Fatalf("questions = %+v, want an input and a confirmation", raised)
	}
	q := raised[0]
	want := `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(q.ResponseSchema)); diff != "" || q.ExpiresIn != time.Hour || q.Metadata["shop"] != 1 {
		t.Errorf("first question = %+v, want the schema of the type, an hour and the metadata", q)
	}
}

// TestChangedQuestionIsRepeated: a question whose text differs from the answered question is a
// new question.
func TestChangedQuestionIsRepeated(t *testing.T) {
	t.Parallel()
	seats := 5
	tool := tools.Func("book", "Books.", func(ctx context.Context, _ struct{}) (string, error) {
		yes, err := tools.Confirm(ctx, fmt.Sprintf("%d seats are left. Book?", seats))
		if err != nil {
			seats--
			return "", err
		}
		return fmt.Sprint(yes), nil
	})
	_, raised := answer(t, tool, answerWith(`{"approved":true}`), answerWith(`{"approved":true}`))
	if len(raised) != 3 || raised[1].Index != 0 || raised[1].Message != "4 seats are left. Book?" {
		t.Errorf("questions = %+v, want 3, the second of them changed", raised)
	}
}

func TestQuestionsWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer tools.Answer
		want   string
	}{
		"declined":  {tools.Answer{Status: tools.Declined}, "order: The user declined to answer the question."},
		"and why":   {tools.Answer{Status: tools.Declined, Words: `"no"`}, `order: The user declined to answer the question. Reason: "\"no\""`},
		"cancelled": {tools.Answer{Status: tools.Cancelled}, "order: The question was cancelled without an answer."},
		"expired":   {tools.Answer{Status: tools.Expired}, "order: The question expired without an answer."},
		"misfit":    {answerWith(`7`), "order: invalid question: the answer does not fit the Go type"},
	} {
		called := 0
		result, _ := answer(t, order(&called), tt.answer)
		if !result.IsError || !strings.HasPrefix(result.Content, tt.want) {
			t.Errorf("%s: result for the model: got %q, want %q", name, result.Content, tt.want)
		}
	}
	called := 0
	if result, _ := answer(t, order(&called), answerWith(`{"city":"Ulm"}`), tools.Answer{Status: tools.Declined}); result.Content != "Ulm false" {
		t.Errorf("result of a declined confirmation = %+v, want Ulm false", result)
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]tools.Question{
		"no message":    {Message: " "},
		"long message":  {Message: strings.Repeat("x", tools.MaxQuestion+1)},
		"taken reason":  {Message: "x", Reason: "tool_call"},
		"core reason":   {Message: "x", Reason: "core:new"},
		"bad reason":    {Message: "x", Reason: "a:b:c"},
		"no schema":     {Message: "x", ResponseSchema: json.RawMessage(`{"type":7}`)},
		"foreign":       {Message: "x", ResponseSchema: json.RawMessage(`{"$ref":"https://example.com/x"}`)},
		"large schema":  {Message: "x", ResponseSchema: json.RawMessage(`{"title":"` + strings.Repeat("x", tools.MaxQuestionSchema) + `"}`)},
		"metadata":      {Message: "x", Metadata: map[string]any{"x": func() {}}},
		"much metadata": {Message: "x", Metadata: map[string]any{"x": strings.Repeat("x", tools.MaxQuestionSchema)}},
		"our metadata":  {Message: "x", Metadata: map[string]any{"perdure.question": 1}},
		"state":         {Message: "x", State: make([]byte, tools.MaxQuestionSchema+1)},
		"hurry":         {Message: "x", ExpiresIn: time.Millisecond},
	} {
		var got error
		tool := tools.Func("ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			_, got = tools.AskJSON(ctx, q)
			return "", got
		})
		result, err := tool.Call(t.Context(), tools.Call{Asks: true})
		if bad := (*tools.QuestionError)(nil); !errors.As(got, &bad) || err != nil || !result.IsError {
			t.Errorf("%s: got %v; result %+v, %v, want a QuestionError", name, got, result, err)
		}
	}
	if _, err := tools.Ask[string](t.Context(), tools.Question{Message: "x"}); !errors.Is(err, tools.ErrNobodyToAsk) {
		t.Errorf("Ask outside of a call: got %v, want %v", err, tools.ErrNobodyToAsk)
	}
}
