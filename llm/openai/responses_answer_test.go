package openai

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// respond feeds the data of events to a response.
func respond(limits wire.Limits, events ...string) ([]llm.Chunk, error) {
	r := newResponse(newResponses(Config{APIKey: "k"}, limits), &llm.Request{Model: "asked"})
	var chunks []llm.Chunk
	for _, data := range events {
		if err := r.Read(ssestream.Event{Data: []byte(data + "\n")}); err != nil {
			return chunks, err
		}
		chunks = append(chunks, r.Take()...)
	}
	err := r.End(nil)
	return append(chunks, r.Take()...), err
}

// finishOf returns the finish of a response.
func finishOf(reason llm.FinishReason) llm.Finish {
	return llm.Finish{Reason: reason, Model: "asked", Provider: "openai-responses"}
}

const completed = `{"type":"response.completed","response":{"status":"completed"}}`

func TestResponseEvents(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	textDelta := func(text string) string {
		return `{"type":"response.output_text.delta","output_index":0,"delta":"` + text + `"}`
	}
	call := `{"type":"response.output_item.added","output_index":4,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}`
	for name, test := range map[string]struct {
		events []string
		want   []llm.Chunk
	}{
		"usage and model": {
			[]string{`{"type":"response.completed","response":{"status":"completed","model":"real","usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}}}`},
			[]llm.Chunk{llm.Finish{
				Reason: llm.FinishStop, Model: "real", Provider: "openai-responses",
				Usage: llm.Usage{Input: n(5), Output: n(2), Total: n(7), CachedInput: n(4), CacheWrite: n(0), Reasoning: n(1)},
			}},
		},
		"a refusal": {
			[]string{`{"type":"response.refusal.delta","output_index":0,"delta":"I cannot."}`, completed},
			[]llm.Chunk{llm.TextDelta{Text: "I cannot."}, finishOf(llm.FinishContentFilter)},
		},
		"a refusal without deltas": {
			[]string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}}`, completed},
			[]llm.Chunk{llm.TextDelta{Text: "I cannot."}, finishOf(llm.FinishContentFilter)},
		},
		"two messages": {
			[]string{textDelta("Let me look."), `{"type":"response.output_text.delta","output_index":1,"delta":"It is 4."}`, `{"type":"response.output_text.delta","output_index":1,"delta":"2"}`, completed},
			[]llm.Chunk{llm.TextDelta{Text: "Let me look."}, llm.TextDelta{Text: "\n\nIt is 4."}, llm.TextDelta{Text: "2"}, finishOf(llm.FinishStop)},
		},
		"a summary of two parts": {
			[]string{
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Tw"}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"o."}`,
				completed,
			},
			[]llm.Chunk{llm.ReasoningDelta{Text: "One."}, llm.ReasoningDelta{Text: "\n\nTw"}, llm.ReasoningDelta{Text: "o."}, llm.ReasoningEnd{Provider: "openai-responses"}, finishOf(llm.FinishStop)},
		},
		"thoughts and their summary": {
			[]string{
				`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Hm"}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"It thinks."}`,
				completed,
			},
			[]llm.Chunk{llm.ReasoningDelta{Text: "Hm"}, llm.ReasoningEnd{Provider: "openai-responses"}, finishOf(llm.FinishStop)},
		},
		"calls are numbered among themselves": {
			[]string{call, `{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{}"}`, completed},
			[]llm.Chunk{llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"}, finishOf(llm.FinishToolCalls)},
		},
		"a call without deltas": {
			[]string{call, `{"type":"response.output_item.done","output_index":4,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{}"}}`, completed},
			[]llm.Chunk{llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"}, finishOf(llm.FinishToolCalls)},
		},
		"items that are only done": {
			[]string{
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Hm"}]}}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg","content":[{"type":"output_text","text":"Hi"}]}}`,
				`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}}`,
				completed,
			},
			[]llm.Chunk{
				llm.ReasoningDelta{Text: "Hm"}, llm.ReasoningEnd{Provider: "openai-responses"}, llm.TextDelta{Text: "Hi"},
				llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"}, finishOf(llm.FinishToolCalls),
			},
		},
		"events that repeat the deltas": {
			[]string{
				textDelta("Hi"), `{"type":"response.output_text.done","output_index":0,"text":"Hi"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}`, completed, `[DONE]`,
			},
			[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finishOf(llm.FinishStop)},
		},
		"an error of null": {
			[]string{`{"type":"response.output_text.delta","error":null,"output_index":0,"delta":"Hi"}`, completed},
			[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finishOf(llm.FinishStop)},
		},
		"half a call at a token limit": {
			[]string{call, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`},
			[]llm.Chunk{llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, finishOf(llm.FinishLength)},
		},
		"incomplete for another reason": {
			[]string{textDelta("Hi"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"steered"}}}`},
			[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finishOf(llm.FinishOther)},
		},
		"incomplete, in a completed event": {
			[]string{textDelta("Hi"), `{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`},
			[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finishOf(llm.FinishContentFilter)},
		},
		"no status": {
			[]string{textDelta("Hi"), `{"type":"response.completed","response":{}}`},
			[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finishOf(llm.FinishStop)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := respond(wire.Limits{}, test.events...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfResponse(t *testing.T) {
	t.Parallel()
	failed := func(members string) string {
		return `{"type":"response.failed","response":{"status":"failed","error":` + members + `}}`
	}
	for data, want := range map[string]llm.Error{
		failed(`{"code":"rate_limit_exceeded","message":"no"}`): {Code: llm.CodeRateLimited, Message: "no"},
		failed(`{"code":"server_error","message":"no"}`):        {Code: llm.CodeUnavailable, Message: "no"},
		failed(`{"code":"image_too_large","message":"no"}`):     {Code: llm.CodeRequestTooLarge, Message: "no"},
		failed(`{"code":"bio_policy","message":"no"}`):          {Code: llm.CodeContentFilter, Message: "no"},
		failed(`{"code":"what_is_this","message":"no"}`):        {Code: llm.CodeUnavailable, Message: "no"},
		failed(`null`): {Code: llm.CodeUnavailable, Message: "the response is failed"},
		`{"type":"response.failed","response":{}}`:                                             {Code: llm.CodeUnavailable, Message: "the response is failed"},
		`{"type":"response.completed","response":{"status":"cancelled"}}`:                      {Code: llm.CodeUnavailable, Message: "the response is cancelled"},
		`{"type":"error","code":"context_length_exceeded","message":"no","param":null}`:        {Code: llm.CodeContextLength, Message: "no"},
		`{"type":"error","error":{"type":"invalid_request_error","code":null,"message":"no"}}`: {Code: llm.CodeInvalidRequest, Message: "no"},
		`{"error":{"message":"no","code":429}}`:                                                {Code: llm.CodeRateLimited, Status: 429, Message: "no"},
		`{"type":"response.completed"}`:                                                        {Code: llm.CodeMalformedResponse, Message: "the last event has no response"},
		`{"type":"response.output_item.added","output_index":0,"item":[]}`:                     {Code: llm.CodeMalformedResponse, Message: "an item of the response is not a JSON object"},
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`:      {Code: llm.CodeMalformedResponse, Message: "the provider sent arguments of a tool call before its start"},
		`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`:            {Code: llm.CodeTruncated, Message: "the stream ended before the completion did"},
		`["x"]`: {Code: llm.CodeMalformedResponse, Message: "an event of the stream is not a JSON object"},
	} {
		_, err := respond(wire.Limits{}, data)
		failure, ok := err.(*llm.Error)
		if !ok {
			t.Errorf("%s: error is %v", data, err)
			continue
		}
		if diff := cmp.Diff(want, *failure); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
}

// TestBeginningsAreBounded: items use memory before they have content, so their number is bounded.
func TestBeginningsAreBounded(t *testing.T) {
	t.Parallel()
	var events []string
	for i := range 100 {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"message"}}`, i))
	}
	_, err := respond(wire.Limits{ContentBytes: 500}, events...)
	if failure, ok := err.(*llm.Error); !ok || failure.Code != llm.CodeResponseTooLarge {
		t.Errorf("error is %v, want %q", err, llm.CodeResponseTooLarge)
	}
}

// FuzzResponse: for any output of the server, the chunks keep the rules, and the content to send
// back can be encoded.
func FuzzResponse(f *testing.F) {
	f.Add(`{"type":"response.output_text.delta","delta":"\ud83d"}`, completed, completed)
	f.Add(`{"type":"response.output_item.added","output_index":-1,"item":{"type":"function_call","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":-1,"delta":"\xff"}`, completed)
	f.Add(`{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"x","id":"\xff"}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}`, completed)
	f.Add(`{"type":"response.completed","response":{"usage":{"input_tokens":"x"}}}`, `{"error":5}`, `{`)
	f.Fuzz(func(t *testing.T, first, second, third string) {
		chunks, err := respond(wire.Limits{ContentBytes: 1 << 20}, first, second, third)
		if _, ok := err.(*llm.Error); err != nil && !ok {
			t.Errorf("error = %T, want *llm.Error", err)
		}
		wantRules(t, chunks, err)
		var collector llm.Collector
		for _, chunk := range chunks {
			if end, ok := chunk.(llm.ReasoningEnd); ok && end.Data != nil && !json.Valid(end.Data) {
				t.Errorf("content to send back = %q, want JSON", end.Data)
			}
			collector.Add(chunk)
		}
		if _, err := json.Marshal(newResponses(Config{}, wire.Limits{}).input(&llm.Request{Model: "asked", Messages: []llm.Message{collector.Message()}})); err != nil {
			t.Errorf("the answer cannot be sent back: %v", err)
		}
	})
}
