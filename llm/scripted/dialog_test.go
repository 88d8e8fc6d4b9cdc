package scripted_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/llmtest"
	"github.com/perdure/perdure/llm/scripted"
)

var refund = scripted.Dialog("refund", 0,
	scripted.Turn{
		When: regexp.MustCompile(`(?i)refund (?P<order>[A-Z]-\d+)`),
		Steps: []scripted.Answer{
			{Calls: []scripted.Call{{Tool: "get_order", Arguments: json.RawMessage(`{"id":"{order}","n":1.50}`)}, {Tool: "clock"}}},
			{Calls: []scripted.Call{{Tool: "issue_refund", Arguments: json.RawMessage(`{"amount":"{get_order.total}","items":["{get_order.items.1.title}","{no.such}"],"why":"{order}!"}`)}}},
			{Say: "{order}: {get_order.total} for {get_order.items}. {issue_refund} {get_order.none} {issue_refund.x}"},
		},
	},
	scripted.Turn{When: regexp.MustCompile(`^use `), Steps: []scripted.Answer{{Calls: []scripted.Call{{Tool: "hammer"}}}}},
	scripted.Turn{When: regexp.MustCompile(`^hello`), Steps: []scripted.Answer{{Say: "Hello."}}},
)

// played returns the next answer of a dialog.
func played(t *testing.T, messages ...llm.Message) llm.Message {
	t.Helper()
	offered := []llm.Tool{{Name: "get_order"}, {Name: "clock"}, {Name: "issue_refund"}}
	outcome := llmtest.Stream(t, t.Context(), scripted.New(refund), &llm.Request{Model: "scripted/refund", Messages: messages, Tools: offered})
	if outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	return outcome.Message
}

// toolResult returns the result of a call.
func toolResult(call llm.ToolCall, text string) llm.Message {
	return llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, Parts: []llm.Part{llm.Text{Text: text}}}
}

// TestDialog: a dialog continues after the steps that the conversation already has, and uses the
// user's messages and the results of tools.
func TestDialog(t *testing.T) {
	t.Parallel()
	history := []llm.Message{userMessage("hello"), played(t, userMessage("hello")), userMessage("Please refund B-17.")}
	first := played(t, history...)
	if diff := cmp.Diff([]llm.ToolCall{
		{ID: "call_1", Name: "get_order", Arguments: `{"id":"B-17","n":1.50}`}, {ID: "call_2", Name: "clock", Arguments: "{}"},
	}, first.ToolCalls); diff != "" {
		t.Fatalf("first calls (-want +got):\n%s", diff)
	}
	history = append(history, first, toolResult(first.ToolCalls[0], `{"total":12.50,"items":[{"title":"a"},{"title":"b"}]}`), toolResult(first.ToolCalls[1], "noon"))
	second := played(t, history...)
	if diff := cmp.Diff([]llm.ToolCall{
		{ID: "call_3", Name: "issue_refund", Arguments: `{"amount":12.50,"items":["b","{no.such}"],"why":"B-17!"}`},
	}, second.ToolCalls); diff != "" {
		t.Fatalf("second calls (-want +got):\n%s", diff)
	}
	history = append(history, second, toolResult(second.ToolCalls[0], "Not approved."))
	third := played(t, history...)
	if got, want := third.Text(), `B-17: 12.50 for [{"title":"a"},{"title":"b"}]. Not approved. {get_order.none} {issue_refund.x}`; got != want {
		t.Errorf("answer: got %q, want %q", got, want)
	}
	if got := played(t, append(history, third)...).Text(); got != "I am a script, and the script has ended." {
		t.Errorf("answer after the end of the dialog = %q, want that the script has ended", got)
	}
}

// TestDialogAfterAnotherAgent: the steps of another agent that handed the conversation over are not
// steps of the dialog.
func TestDialogAfterAnotherAgent(t *testing.T) {
	t.Parallel()
	before := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "clock", Arguments: "{}"}}}
	over := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_2", Name: "transfer_to_shop", Arguments: "{}"}}}
	history := []llm.Message{userMessage("Please refund B-17."), before, toolResult(before.ToolCalls[0], "noon"), over, toolResult(over.ToolCalls[0], "Yes.")}
	first := played(t, history...)
	if len(first.ToolCalls) != 2 || first.ToolCalls[0].Name != "get_order" {
		t.Fatalf("first step = %+v, want get_order and another call", first)
	}
	history = append(history, first, toolResult(first.ToolCalls[0], `{"total":3}`), toolResult(first.ToolCalls[1], "one"))
	if second := played(t, history...); len(second.ToolCalls) != 1 || second.ToolCalls[0].Name != "issue_refund" {
		t.Errorf("next step = %+v, want issue_refund", second)
	}
}

func TestInvalidDialogs(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"Good morning": "I am a script, and no entry of the script matches that.",
		"use it":       "I am a script, and would call hammer here, but the agent does not have that tool.",
	} {
		if got := played(t, userMessage(prompt)); got.Text() != want || len(got.ToolCalls) != 0 {
			t.Errorf("%q: answer = %q, want %q", prompt, got.Text(), want)
		}
	}
}

// TestDialogAboutMedia: a turn for images answers messages with an image, and can name its media
// type.
func TestDialogAboutMedia(t *testing.T) {
	t.Parallel()
	script := scripted.Dialog("eyes", 0,
		scripted.Turn{Media: llm.MediaImage, When: regexp.MustCompile(`(?i)what is (?P<it>\w+)`), Steps: []scripted.Answer{{Think: "{media.1.kind}?", Say: "{it}: {media.0.mimeType}"}}},
		scripted.Turn{Media: llm.MediaImage, Steps: []scripted.Answer{{Say: "An image without a question."}}},
		scripted.Turn{Steps: []scripted.Answer{{Say: "I see {media}."}}},
	)
	png, pdf := llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "AAAA"}, llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: "AAAA"}
	for want, parts := range map[string][]llm.Part{
		"this: image/png":              {llm.Text{Text: "What is this?"}, png, pdf},
		"An image without a question.": {llm.Text{Text: "Look."}, png},
		`I see [{"kind":"document","mimeType":"application/pdf"}].`: {llm.Text{Text: "What is this?"}, pdf},
		"I see [].": {llm.Text{Text: "What is this?"}},
	} {
		message := llm.Message{Role: llm.RoleUser, Parts: parts}
		outcome := llmtest.Stream(t, t.Context(), scripted.New(script), &llm.Request{Model: "scripted/eyes", Messages: []llm.Message{message}})
		if got := outcome.Message.Text(); outcome.Err != nil || got != want {
			t.Errorf("answer: got %q, %v, want %q", got, outcome.Err, want)
		}
	}
}

// TestDialogThinksAndSays: an answer has reasoning, a text and calls, with references in all of
// them.
func TestDialogThinksAndSays(t *testing.T) {
	t.Parallel()
	script := scripted.Dialog("all", 0, scripted.Turn{When: regexp.MustCompile(`(?P<what>tea)`), Steps: []scripted.Answer{{
		Think: "Is it {what}?", Say: "I look up {what}.", Calls: []scripted.Call{{Tool: "look", Arguments: json.RawMessage(`{"a":{"{what}":"a cup of {what}"}}`)}},
	}}})
	outcome := llmtest.Stream(t, t.Context(), scripted.New(script), &llm.Request{Model: "scripted/all", Messages: []llm.Message{userMessage("tea")}, Tools: []llm.Tool{{Name: "look"}}})
	if outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	if diff := cmp.Diff([]llm.ToolCall{{ID: "call_1", Name: "look", Arguments: `{"a":{"tea":"a cup of tea"}}`}}, outcome.Message.ToolCalls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := outcome.Message.Text(); got != "I look up tea." {
		t.Errorf("text = %q, want %q", got, "I look up tea.")
	}
	thought := ""
	for _, r := range outcome.Message.Reasoning {
		thought += r.Text
	}
	if thought != "Is it tea?" {
		t.Errorf("reasoning = %q, want %q", thought, "Is it tea?")
	}
}
