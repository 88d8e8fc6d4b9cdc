package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/llmtest"
	"github.com/perdure/perdure/llm/scripted"
)

// userMessage returns a message of the user.
func userMessage(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: text}}}
}

var tools = []llm.Tool{{Name: "calculate"}, {Name: "current_time"}}

// demo plays one turn of the demo and checks that the stream keeps the rules.
func demo(t *testing.T, tools []llm.Tool, messages ...llm.Message) llmtest.Outcome {
	t.Helper()
	outcome := llmtest.Stream(t, t.Context(), scripted.New(scripted.Demo(0)), &llm.Request{Model: "scripted/demo", Messages: messages, Tools: tools})
	if outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	return outcome
}

func TestDemoIntroducesItself(t *testing.T) {
	t.Parallel()
	outcome := demo(t, nil, userMessage("earlier"), llm.Message{Role: llm.RoleAssistant}, userMessage("Hello, 12*7 at what time?"))
	text := outcome.Message.Text()
	for _, want := range []string{"script", "not a real model", "Hello, 12*7 at what time?"} {
		if !strings.Contains(text, want) {
			t.Errorf("text = %q, want text with %q", text, want)
		}
	}
	if strings.Contains(text, "earlier") {
		t.Errorf("text = %q, want only the last words", text)
	}
	if len(outcome.Message.ToolCalls) != 0 {
		t.Errorf("calls = %v, want none: no tool is offered", outcome.Message.ToolCalls)
	}
	finish := outcome.Finish
	if finish.Reason != llm.FinishStop || finish.Model != "scripted/demo" || finish.Provider != "scripted" {
		t.Errorf("finish = %+v, want stop of scripted/demo", finish)
	}
	if got, want := *finish.Usage.Total, *finish.Usage.Input+int64(len(outcome.Chunks)-1); got != want || *finish.Usage.Input != 6 {
		t.Errorf("usage is input %d, total %d, want 6, %d", *finish.Usage.Input, got, want)
	}
}

func TestDemoCallsTools(t *testing.T) {
	t.Parallel()
	calculate := llm.ToolCall{ID: "call_1", Name: "calculate", Arguments: `{"expression":"12*7"}`}
	for text, want := range map[string][]llm.ToolCall{
		"What is 12*7?":               {calculate},
		"What time is it?":            {{ID: "call_1", Name: "current_time", Arguments: "{}"}},
		"12*7, and the time, please":  {calculate, {ID: "call_2", Name: "current_time", Arguments: "{}"}},
		"What is 1.5 + 2 / 3 - 4?":    {{ID: "call_1", Name: "calculate", Arguments: `{"expression":"1.5 + 2 / 3 - 4"}`}},
		"Sometimes I count 12 sheep.": nil,
	} {
		outcome := demo(t, tools, userMessage(text))
		if diff := cmp.Diff(want, outcome.Message.ToolCalls); diff != "" {
			t.Errorf("%q: calls (-want +got):\n%s", text, diff)
		}
		if asks := outcome.Finish.Reason == llm.FinishToolCalls; asks != (want != nil) {
			t.Errorf("%q: finish reason = %q, want calls: %t", text, outcome.Finish.Reason, want != nil)
		}
	}
}

func TestDemoUsesResults(t *testing.T) {
	t.Parallel()
	question := userMessage("12*7, and the time?")
	asked := demo(t, tools, question).Message
	answered := demo(t, tools, question, asked,
		llm.Message{Role: llm.RoleTool, ToolCallID: asked.ToolCalls[0].ID, Parts: []llm.Part{llm.Text{Text: "84"}}},
		llm.Message{Role: llm.RoleTool, ToolCallID: asked.ToolCalls[1].ID, Parts: []llm.Part{llm.Text{Text: "noon"}}},
	).Message
	for _, want := range []string{"calculate answered: 84", "current_time answered: noon"} {
		if !strings.Contains(answered.Text(), want) {
			t.Errorf("text = %q, want text with %q", answered.Text(), want)
		}
	}
	again := demo(t, tools, question, asked, answered, userMessage("3+4?")).Message
	if len(again.ToolCalls) != 1 || again.ToolCalls[0].ID != "call_3" {
		t.Errorf("calls of the next turn are %+v, want one with the next id", again.ToolCalls)
	}
}

func TestThink(t *testing.T) {
	t.Parallel()
	ask := func(messages ...llm.Message) llm.Message {
		outcome := llmtest.Stream(t, t.Context(), scripted.New(scripted.Think(0)), &llm.Request{Model: "think", Messages: messages, Tools: tools})
		if outcome.Err != nil {
			t.Fatal(outcome.Err)
		}
		return outcome.Message
	}
	question := userMessage("12*7?")
	first := ask(question)
	if len(first.ToolCalls) != 1 || len(first.Reasoning) != 2 || first.Reasoning[0].Text == "" || first.Reasoning[1].Text != "" {
		t.Fatalf("first answer = %+v, want one call and reasoning in two parts", first)
	}
	result := llm.Message{Role: llm.RoleTool, ToolCallID: first.ToolCalls[0].ID, Parts: []llm.Part{llm.Text{Text: "84"}}}
	if got := ask(question, first, result).Text(); !strings.Contains(got, "2 times") {
		t.Errorf("answer with its own thinking = %q, want 2 times", got)
	}
	first.Reasoning[0].Text += "!"
	if got := ask(question, first, result).Text(); !strings.Contains(got, "1 times") {
		t.Errorf("answer with forged thinking = %q, want 1 times", got)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Please count to 5!": "1 2 3 4 5",
		"count to 1":         "1",
		"count to 0":         "",
	} {
		outcome := llmtest.Stream(t, t.Context(), scripted.New(scripted.Count(0)), &llm.Request{Model: "count", Messages: []llm.Message{userMessage(text)}})
		if got := outcome.Message.Text(); outcome.Err != nil || got != want {
			t.Errorf("%q: text is %q and error %v, want %q", text, got, outcome.Err, want)
		}
	}
	outcome := llmtest.Stream(t, t.Context(), scripted.New(scripted.Count(0)), &llm.Request{Model: "count", Messages: []llm.Message{userMessage("count to 999999999")}})
	if n := len(outcome.Chunks); n != 100_001 {
		t.Errorf("%d chunks, want the bound and a finish", n)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	down := &llm.Error{Code: llm.CodeUnavailable}
	model := scripted.New(scripted.Fixed("f", 0,
		[]scripted.Step{{Chunk: llm.TextDelta{Text: "Hel"}}, {Err: down}},
		scripted.SplitWords("cut off"),
		append(scripted.SplitWords("Hello you"), scripted.Step{Chunk: llm.Finish{Reason: llm.FinishStop, Model: "m"}}),
	))
	for i, want := range []struct {
		text     string
		wantCode llm.Code
	}{
		{"Hel", llm.CodeUnavailable},
		{"cut off", llm.CodeTruncated},
		{"Hello you", ""},
		{"", llm.CodeInvalidRequest},
	} {
		outcome := llmtest.Stream(t, t.Context(), model, &llm.Request{Model: "scripted/f"})
		var code llm.Code
		var failure *llm.Error
		if errors.As(outcome.Err, &failure) {
			code = failure.Code
		}
		if outcome.Message.Text() != want.text || code != want.wantCode {
			t.Errorf("call %d: text %q and code %q, want %q and %q", i, outcome.Message.Text(), code, want.text, want.wantCode)
		}
	}
}

func TestUnknownScript(t *testing.T) {
	t.Parallel()
	outcome := llmtest.Stream(t, t.Context(), scripted.New(), &llm.Request{Model: "scripted/nobody"})
	var failure *llm.Error
	if !errors.As(outcome.Err, &failure) || failure.Code != llm.CodeNotFound {
		t.Errorf("error is %v, want %q", outcome.Err, llm.CodeNotFound)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		outcome := llmtest.Stream(t, t.Context(), scripted.New(), &llm.Request{Model: "scripted/count", Messages: []llm.Message{userMessage("count to 39")}})
		if took, want := time.Since(started), 40*scripted.DefaultPace; outcome.Err != nil || took != want {
			t.Errorf("39 numbers and a finish took %v, want %v (error %v)", took, want, outcome.Err)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 110*time.Millisecond, enough)
		defer cancel()
		started := time.Now()
		outcome := llmtest.Stream(t, ctx, scripted.New(), &llm.Request{Model: "scripted/count", Messages: []llm.Message{userMessage("count to 1000")}})
		if !errors.Is(outcome.Err, enough) {
			t.Errorf("error is %v, want the cause of ctx", outcome.Err)
		}
		if got := outcome.Message.Text(); got != "1 2 3 4 " {
			t.Errorf("text before the cancel = %q, want %q", got, "1 2 3 4 ")
		}
		if took := time.Since(started); took != 110*time.Millisecond {
			t.Errorf("time until the cancel = %v, want 110ms", took)
		}
	})
}

func Example() {
	model := scripted.New(scripted.Demo(0))
	var answer llm.Collector
	for chunk, err := range model.Stream(context.Background(), &llm.Request{Model: "scripted/demo", Messages: []llm.Message{userMessage("Hello!")}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Add(chunk)
	}
	fmt.Println(answer.Message().Text())
	// Output: I am a script, not a real model: this is Perdure's offline demo. You said: “Hello!”.
}
