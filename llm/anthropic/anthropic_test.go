package anthropic

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
	llmtest.Run(t, provider)
}

func BenchmarkStream(b *testing.B) { llmtest.Benchmark(b, provider) }

// provider describes the provider to the suite.
var provider = llmtest.Provider{
	New: func(e llmtest.Endpoint) llm.Model {
		return New(Config{BaseURL: e.BaseURL, APIKey: e.APIKey, HTTPClient: e.Client})
	},
	NewEncoder: func() llmtest.Encoder { return &encoder{calls: map[int]int{}} },
	ErrorBody: func(message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":"api_error","message":%q},"request_id":"req_1"}`, message)
	},
}

// encoder writes Messages in Anthropic's format.
type encoder struct {
	blocks int         // number of blocks that were started
	open   string      // type of the last block, if more content can follow in it
	calls  map[int]int // block numbers of the calls
}

var _ llmtest.Sealer = (*encoder)(nil)

func (e *encoder) Begin() string {
	return line("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"test-model-2026","stop_reason":null,"stop_sequence":null}`) +
		line("ping", "")
}

func (e *encoder) Text(literal string) string {
	return e.within("text", `"text":""`) + e.delta(e.blocks-1, `"type":"text_delta","text":`+literal)
}

func (e *encoder) Reasoning(literal string) string {
	return e.within("thinking", `"thinking":"","signature":""`) + e.delta(e.blocks-1, `"type":"thinking_delta","thinking":`+literal)
}

func (e *encoder) Seal(opaque string) string {
	return e.within("thinking", `"thinking":"","signature":""`) +
		e.delta(e.blocks-1, fmt.Sprintf(`"type":"signature_delta","signature":%q`, opaque)) + e.end()
}

func (e *encoder) ToolCall(index int, id, name string) string {
	members := fmt.Sprintf(`"name":%q,"input":{}`, name)
	if id != "" {
		members += fmt.Sprintf(`,"id":%q`, id)
	}
	e.calls[index] = e.blocks
	return e.begin("tool_use", members)
}

func (e *encoder) Arguments(index int, literal string) string {
	return e.delta(e.calls[index], `"type":"input_json_delta","partial_json":`+literal)
}

func (e *encoder) Finish(reason llm.FinishReason, usage llm.Usage) string {
	stop := map[llm.FinishReason]string{
		llm.FinishStop: "end_turn", llm.FinishToolCalls: "tool_use", llm.FinishLength: "max_tokens", llm.FinishContentFilter: "refusal",
	}[reason]
	return e.end() + line("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":%s`, stop, encodeUsage(usage))) +
		line("message_stop", "")
}

// encodeUsage returns usage in the provider's format.
func encodeUsage(usage llm.Usage) string {
	counts := map[string]any{}
	for name, count := range map[string]*int64{
		"input_tokens": usage.Input, "cache_read_input_tokens": usage.CachedInput, "cache_creation_input_tokens": usage.CacheWrite, "output_tokens": usage.Output,
	} {
		if count != nil {
			counts[name] = *count
		}
	}
	if usage.CachedInput != nil {
		counts["input_tokens"] = *usage.Input - *usage.CachedInput // the API counts separately what llm.Usage counts together
	}
	if usage.Reasoning != nil {
		counts["output_tokens_details"] = map[string]int64{"thinking_tokens": *usage.Reasoning}
	}
	data, _ := json.Marshal(counts)
	return string(data)
}

func (e *encoder) Fault(message string) string {
	return "event: error\ndata: " + fmt.Sprintf(`{"type":"error","error":{"type":"overloaded_error","message":%q}}`, message) + "\n\n"
}

// within starts a block, unless a block of the type is open.
func (e *encoder) within(kind, members string) string {
	if e.open == kind {
		return ""
	}
	return e.begin(kind, members)
}

// begin returns the event that begins a content block.
func (e *encoder) begin(kind, members string) string {
	before := e.end()
	e.blocks++
	e.open = kind
	return before + line("content_block_start", fmt.Sprintf(`"index":%d,"content_block":{"type":%q,%s}`, e.blocks-1, kind, members))
}

// end returns the event that ends a content block.
func (e *encoder) end() string {
	if e.open == "" || e.open == "tool_use" { // calls stay open: the suite interleaves them
		e.open = ""
		return ""
	}
	e.open = ""
	return line("content_block_stop", fmt.Sprintf(`"index":%d`, e.blocks-1))
}

// delta returns a part of a content block.
func (e *encoder) delta(index int, members string) string {
	return line("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{%s}`, index, members))
}

// line returns one event. The format repeats the event's type in its data.
func line(kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, members)
}
