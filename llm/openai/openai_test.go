package openai

import (
	"encoding/json"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	llmtest.Run(t, chatProvider)
}

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, chatProvider) }

// chatProvider describes the provider to the suite.
var chatProvider = llmtest.Provider{
	New: func(e llmtest.Endpoint) llm.Model {
		return New(Config{BaseURL: e.BaseURL, APIKey: e.APIKey, HTTPClient: e.Client})
	},
	NewEncoder: func() llmtest.Encoder { return encoder{} },
	ErrorBody: func(message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`, message)
	},
}

// encoder writes Chat Completions in OpenAI's format.
type encoder struct{}

func (encoder) Begin() string { return deltaEvent(`{"role":"assistant","content":"","refusal":null}`) }

func (encoder) Text(literal string) string { return deltaEvent(`{"content":` + literal + `}`) }

func (encoder) Reasoning(literal string) string {
	return deltaEvent(`{"reasoning_content":` + literal + `}`)
}

func (encoder) ToolCall(index int, id, name string) string {
	member := ""
	if id != "" {
		member = fmt.Sprintf(`"id":%q,`, id)
	}
	return deltaEvent(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"type":"function","function":{"name":%q,"arguments":""}}]}`, index, member, name))
}

func (encoder) Arguments(index int, literal string) string {
	return deltaEvent(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, index, literal))
}

func (encoder) Finish(reason llm.FinishReason, usage llm.Usage) string {
	events := event(fmt.Sprintf(`{"model":"test-model-2026","choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":null}`, reason))
	if usage != (llm.Usage{}) {
		counts, _ := json.Marshal(map[string]any{
			"prompt_tokens": usage.Input, "completion_tokens": usage.Output, "total_tokens": usage.Total,
			"prompt_tokens_details":     map[string]*int64{"cached_tokens": usage.CachedInput},
			"completion_tokens_details": map[string]*int64{"reasoning_tokens": usage.Reasoning},
		})
		events += event(fmt.Sprintf(`{"model":"test-model-2026","choices":[],"usage":%s}`, counts))
	}
	return events + event("[DONE]")
}

func (encoder) Fault(message string) string {
	return event(fmt.Sprintf(`{"error":{"message":%q,"type":"server_error","code":null}}`, message))
}

// deltaEvent returns a part of an answer.
func deltaEvent(delta string) string {
	return event(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"test-model-2026","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}],"usage":null}`)
}

// event returns a server-sent event.
func event(data string) string { return "data: " + data + "\n\n" }
