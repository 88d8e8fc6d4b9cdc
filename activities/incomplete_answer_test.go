package activities_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// incompleteAnswers are answers with the text 1, in the format of each provider.
var incompleteAnswers = []struct{ provider, reason, events string }{
	{"openai", "length", `{"choices":[{"delta":{"content":"1"},"finish_reason":"length"}]}`},
	{"openai", "content_filter", `{"choices":[{"delta":{"content":"1"},"finish_reason":"content_filter"}]}`},
	{"openai", "content_filter", `{"choices":[{"delta":{"refusal":"1"},"finish_reason":"stop"}]}`},
	{"openai-responses", "length", `{"type":"response.output_text.delta","output_index":0,"delta":"1"}
{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`},
	{"openai-responses", "content_filter", `{"type":"response.output_text.delta","output_index":0,"delta":"1"}
{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`},
	{"openai-responses", "content_filter", `{"type":"response.refusal.delta","output_index":0,"delta":"1"}
{"type":"response.completed","response":{"status":"completed"}}`},
	{"anthropic", "length", anthropicAnswer("max_tokens")},
	{"anthropic", "content_filter", anthropicAnswer("refusal")},
	{"gemini", "length", `{"candidates":[{"content":{"parts":[{"text":"1"}]},"finishReason":"MAX_TOKENS"}]}`},
	{"gemini", "content_filter", `{"candidates":[{"content":{"parts":[{"text":"1"}]},"finishReason":"SAFETY"}]}`},
}

// anthropicAnswer is an answer of Anthropic with a stop reason.
func anthropicAnswer(reason string) string {
	return `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"1"}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":1}}
{"type":"message_stop"}`
}

// serveAnswer serves the lines of an answer as events, and returns the model of the provider.
func serveAnswer(t *testing.T, provider, events string) llm.Model {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range strings.SplitSeq(events, "\n") {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, `{"type":"`), `"`)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, line)
		}
	}))
	t.Cleanup(server.Close)
	environment := map[string]string{
		"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.URL, "GEMINI_API_KEY": "k", "GEMINI_BASE_URL": server.URL,
		"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.URL,
	}
	return models.FromEnv(models.Options{Getenv: func(name string) string { return environment[name] }, Silence: time.Minute})[provider]
}

// incompleteIn returns the events about incomplete answers.
func incompleteIn(events []agui.Event) string {
	var values []string
	for _, e := range events {
		if custom, ok := e.(*agui.Custom); ok && custom.Name == "perdure.answerIncomplete" {
			values = append(values, string(custom.Value))
		}
	}
	return strings.Join(values, " ")
}

// TestIncompleteAnswers: readers see that the answer of a provider was cut or refused. The run succeeds with a
// text. It fails if the answer must fit a schema, also if its beginning does; a refused answer is not sent back.
func TestIncompleteAnswers(t *testing.T) {
	t.Parallel()
	for _, a := range incompleteAnswers {
		t.Run(a.provider+" "+a.reason, func(t *testing.T) {
			t.Parallel()
			model := serveAnswer(t, a.provider, a.events)
			text := setup(t, noModel)
			text.acts.Models["test"] = model
			events, result := text.run("go")
			wantEqual(t, "outcome of the text", result.Outcome, runs.OutcomeSuccess)
			message := text.conversation()[1]
			wantEqual(t, "text", message.Content.Text(), "1")
			wantEqual(t, "event about the text", incompleteIn(events), fmt.Sprintf(`{"messageId":%q,"reason":%q}`, message.ID, a.reason))

			structured := setup(t, noModel)
			structured.acts.Models["test"] = model
			structured.agent = parseDefinition(t, "name: a\nmodel: test/m\noutput: {schema: {type: integer}, repairs: 1}\n")
			events, _ = structured.run("go")
			want, calls := "!invalid_output: the answer does not fit the schema: the answer was cut at the model's limit of output tokens", 2
			if a.reason == "content_filter" {
				want, calls = "!content_filter: the answer does not fit the schema: the model refused to answer, or its provider withheld the answer", 1
			}
			wantEqual(t, "result", resultOf(events), want)
			wantEqual(t, "number of answers", strings.Count(incompleteIn(events), a.reason), calls)
			structured.wantShownConversation(events)
		})
	}
}

// TestCutAnswerIsRepaired: the model learns that its answer was cut, and may answer again.
func TestCutAnswerIsRepaired(t *testing.T) {
	t.Parallel()
	var heard string
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return []llm.Chunk{llm.TextDelta{Text: "1"}, llm.Finish{Reason: llm.FinishLength, Provider: "test", Model: "m"}}, nil
		}
		heard = req.Messages[len(req.Messages)-1].Text()
		return textAnswer("12")
	})
	fixture.agent = parseDefinition(t, "name: a\nmodel: test/m\noutput: {schema: {type: integer}}\n")
	events, _ := fixture.run("go")
	wantEqual(t, "result", resultOf(events), "12")
	wantEqual(t, "message about the cut answer", "user: "+heard, repairOf("the answer was cut at the model's limit of output tokens"))
}
