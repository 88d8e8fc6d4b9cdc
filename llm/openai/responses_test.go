package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/llmtest"
)

func TestResponsesConformance(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	llmtest.Run(t, responsesProvider)
}

func BenchmarkResponsesStream(b *testing.B) { llmtest.Benchmark(b, responsesProvider) }

// responsesProvider describes the provider to the suite.
var responsesProvider = llmtest.Provider{
	New: func(e llmtest.Endpoint) llm.Model {
		return NewResponses(Config{BaseURL: e.BaseURL, APIKey: e.APIKey, HTTPClient: e.Client})
	},
	NewEncoder: func() llmtest.Encoder { return &responsesEncoder{calls: map[int]int{}} },
	ErrorBody: func(message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`, message)
	},
}

// responsesEncoder writes responses in OpenAI's format: items are added and done, each with its
// index in the output.
type responsesEncoder struct {
	items int         // number of items that were added
	open  string      // type of the last item, if it is text or reasoning and still open
	calls map[int]int // item indexes of the calls
}

var _ llmtest.Sealer = (*responsesEncoder)(nil)

func (*responsesEncoder) Begin() string {
	return responsesEvent("response.created", `"response":{"id":"resp_1","model":"test-model-2026","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}`) +
		responsesEvent("response.in_progress", `"response":{"id":"resp_1","model":"test-model-2026","status":"in_progress","output":[],"usage":null}`)
}

func (e *responsesEncoder) Text(literal string) string {
	begun := ""
	if e.open != typeMessage {
		begun = e.begin(typeMessage, fmt.Sprintf(`"id":"msg_%d","status":"in_progress","role":"assistant","content":[]`, e.items))
		begun += responsesEvent("response.content_part.added", fmt.Sprintf(`"output_index":%d,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`, e.items-1))
	}
	return begun + responsesEvent("response.output_text.delta", fmt.Sprintf(`"output_index":%d,"content_index":0,"delta":%s,"logprobs":[]`, e.items-1, literal))
}

func (e *responsesEncoder) Reasoning(literal string) string {
	begun := ""
	if e.open != typeReasoning {
		begun = e.reason()
		begun += responsesEvent("response.reasoning_summary_part.added", fmt.Sprintf(`"output_index":%d,"summary_index":0,"part":{"type":"summary_text","text":""}`, e.items-1))
	}
	return begun + responsesEvent("response.reasoning_summary_text.delta", fmt.Sprintf(`"output_index":%d,"summary_index":0,"delta":%s`, e.items-1, literal))
}

func (e *responsesEncoder) Seal(opaque string) string {
	begun := ""
	if e.open != typeReasoning {
		begun = e.reason()
	}
	e.open = ""
	return begun + responsesEvent("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":{"type":"reasoning","id":"rs_%[1]d","summary":[],"encrypted_content":%q}`, e.items-1, opaque))
}

func (e *responsesEncoder) ToolCall(index int, id, name string) string {
	member := ""
	if id != "" {
		member = fmt.Sprintf(`"call_id":%q,`, id)
	}
	e.calls[index] = e.items
	begun := e.begin(typeCall, fmt.Sprintf(`"id":"fc_%d",%s"name":%q,"arguments":"","status":"in_progress"`, index, member, name))
	e.open = ""
	return begun
}

func (e *responsesEncoder) Arguments(index int, literal string) string {
	return responsesEvent("response.function_call_arguments.delta", fmt.Sprintf(`"output_index":%d,"item_id":"fc_%d","delta":%s`, e.calls[index], index, literal))
}

func (e *responsesEncoder) Finish(reason llm.FinishReason, usage llm.Usage) string {
	event, status, why := "response.completed", "completed", "null"
	switch reason {
	case llm.FinishLength:
		event, status, why = "response.incomplete", "incomplete", `{"reason":"max_output_tokens"}`
	case llm.FinishContentFilter:
		event, status, why = "response.incomplete", "incomplete", `{"reason":"content_filter"}`
	}
	counts := "null"
	if usage != (llm.Usage{}) {
		encoded, _ := json.Marshal(map[string]any{
			"input_tokens": usage.Input, "output_tokens": usage.Output, "total_tokens": usage.Total,
			"input_tokens_details":  map[string]*int64{"cached_tokens": usage.CachedInput},
			"output_tokens_details": map[string]*int64{"reasoning_tokens": usage.Reasoning},
		})
		counts = string(encoded)
	}
	return responsesEvent(event, fmt.Sprintf(`"response":{"id":"resp_1","model":"test-model-2026","status":%q,"error":null,"incomplete_details":%s,"output":[],"usage":%s}`, status, why, counts))
}

func (*responsesEncoder) Fault(message string) string {
	return responsesEvent("error", fmt.Sprintf(`"code":"server_error","message":%q,"param":null`, message))
}

// reason returns the event that begins reasoning.
func (e *responsesEncoder) reason() string {
	return e.begin(typeReasoning, fmt.Sprintf(`"id":"rs_%d","summary":[],"encrypted_content":"begun"`, e.items))
}

// begin returns the event that begins an output item.
func (e *responsesEncoder) begin(kind, members string) string {
	e.items++
	e.open = kind
	return responsesEvent("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":%q,%s}`, e.items-1, kind, members))
}

// responsesEvent returns a server-sent event of the Responses API.
func responsesEvent(kind, members string) string {
	return "event: " + kind + "\n" + event(fmt.Sprintf(`{"type":%q,%s}`, kind, strings.TrimSpace(members)))
}
