package anthropic

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// decode feeds the data of events to an answer.
func decode(limits wire.Limits, events ...string) ([]llm.Chunk, error) {
	a := newAnswer(newModel(Config{}, limits), &llm.Request{Model: "asked"})
	var chunks []llm.Chunk
	for _, data := range events {
		if err := a.Read(ssestream.Event{Data: []byte(data + "\n")}); err != nil {
			return chunks, err
		}
		chunks = append(chunks, a.Take()...)
	}
	err := a.End(nil)
	return append(chunks, a.Take()...), err
}

// finish returns the finish of an answer.
func finish(reason llm.FinishReason, usage llm.Usage) llm.Finish {
	return llm.Finish{Reason: reason, Usage: usage, Model: "asked", Provider: "anthropic"}
}

const endTurn = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`

func TestAnswer(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	end := func(data string) llm.ReasoningEnd {
		return llm.ReasoningEnd{Provider: "anthropic", Data: json.RawMessage(data)}
	}
	for name, test := range map[string]struct {
		events []string
		want   []llm.Chunk
	}{
		"usage": {
			[]string{
				`{"type":"message_start","message":{"model":"real","usage":{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}`,
				`{"type":"ping"}`,
				`{"type":"message_delta","delta":{"stop_reason":"stop_sequence"},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`,
				`{"type":"message_stop"}`,
			},
			[]llm.Chunk{llm.UsageReport{
				Model: "real", Provider: "anthropic", Usage: llm.Usage{Input: n(123), CachedInput: n(100), CacheWrite: n(20), Output: n(1)},
			}, llm.Finish{
				Reason: llm.FinishStop, Model: "real", Provider: "anthropic",
				Usage: llm.Usage{Input: n(123), CachedInput: n(100), CacheWrite: n(20), Output: n(9), Reasoning: n(4)},
			}},
		},
		"the last report counts": {
			[]string{
				`{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"cache_read_input_tokens":null,"output_tokens":-1}}`,
			},
			[]llm.Chunk{
				llm.UsageReport{Model: "asked", Provider: "anthropic", Usage: llm.Usage{Input: n(3), Output: n(1)}},
				finish(llm.FinishStop, llm.Usage{Input: n(5), Output: n(1)}),
			},
		},
		"thinking, hidden thinking, and thinking again": {
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"1"}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}`,
				`{"type":"content_block_stop","index":1}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"é"}}`,
				`{"type":"content_block_stop","index":2}`,
				`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}`,
				`{"type":"content_block_stop","index":3}`,
				`{"type":"content_block_start","index":4,"content_block":{"type":"thinking","thinking":"","signature":"s2"}}`,
				`{"type":"content_block_stop","index":4}`,
				endTurn,
			},
			[]llm.Chunk{
				llm.ReasoningDelta{Text: "Hm"}, end(`{"signature":"s1"}`), end(`{"redacted":"x"}`),
				llm.TextDelta{Text: "é"},
				llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: `{"x":1}`},
				end(`{"signature":"s2","text":2,"calls":1}`),
				finish(llm.FinishToolCalls, llm.Usage{}), // although the server sent end_turn
			},
		},
		"thinking without a signature or an end": {
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hi"}}`,
				endTurn,
			},
			[]llm.Chunk{llm.ReasoningDelta{Text: "Hm"}, llm.ReasoningEnd{Provider: "anthropic"}, llm.TextDelta{Text: "Hi"}, finish(llm.FinishStop, llm.Usage{})},
		},
		"one index for all calls": {
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1"}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"g","input":null}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"2"}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"h"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"3"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
			},
			[]llm.Chunk{
				llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "1"},
				llm.ToolCallStart{Index: 1, ID: "call_2", Name: "g"}, llm.ToolCallDelta{Index: 1, Arguments: "2"},
				llm.ToolCallStart{Index: 2, ID: "call_3", Name: "h"}, llm.ToolCallDelta{Index: 2, Arguments: "3"},
				finish(llm.FinishToolCalls, llm.Usage{}),
			},
		},
		"unknown events are ignored": {
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"x","name":"web_search"}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"thinking_delta","thinking":"of no block"}}`,
				`{"type":"of tomorrow"}`,
				`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`,
			},
			[]llm.Chunk{finish(llm.FinishOther, llm.Usage{})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decode(wire.Limits{}, test.events...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]llm.FinishReason{
		"end_turn": llm.FinishStop, "stop_sequence": llm.FinishStop, "tool_use": llm.FinishToolCalls, "max_tokens": llm.FinishLength,
		"model_context_window_exceeded": llm.FinishLength, "refusal": llm.FinishContentFilter, "pause_turn": llm.FinishOther, "of tomorrow": llm.FinishOther,
	} {
		if got := finishReason(reason); got != want {
			t.Errorf("%s is %q, want %q", reason, got, want)
		}
	}
}

func TestFaultsInStream(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]llm.Error{
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`:                                {Code: llm.CodeUnavailable, Message: "Overloaded"},
		`{"type":"error","error":{"type":"api_error","message":"no"}}`:                                               {Code: llm.CodeUnavailable, Message: "no"},
		`{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`:                                        {Code: llm.CodeRateLimited, Message: "no"},
		`{"type":"error","error":{"type":"timeout_error","message":"no"}}`:                                           {Code: llm.CodeTimeout, Message: "no"},
		`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`:                                   {Code: llm.CodeInvalidRequest, Message: "no"},
		`{"type":"error","error":"no"}`:                                                                              {Code: llm.CodeUnavailable, Message: "no"},
		`{"type":"error"}`:                                                                                           {Code: llm.CodeUnavailable},
		`["x"]`:                                                                                                      {Code: llm.CodeMalformedResponse, Message: "an event of the stream does not fit the API"},
		`{"type":"content_block_delta","index":"x"}`:                                                                 {Code: llm.CodeMalformedResponse, Message: "an event of the stream does not fit the API"},
		`{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{"}}`:            {Code: llm.CodeMalformedResponse, Message: "the provider sent arguments of a tool call before its start"},
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"aaaaaaaaaaaaaaaa"}}`: {Code: llm.CodeResponseTooLarge, Message: "the completion has more than 15 bytes"},
	} {
		_, err := decode(wire.Limits{ContentBytes: 15}, data)
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

// FuzzAnswer: for any output of the server, the chunks keep the rules.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"\ud83d"}}`, endTurn)
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":"\xff"}}}`, endTurn)
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"\xff","signature":"\xff"}}`, endTurn)
	f.Add(`{"type":"error","error":{"message":5}}`, `{"type":"message_stop"}`)
	f.Add(`{"type":"message_start","message":[]}`, `{`)
	f.Fuzz(func(t *testing.T, first, second string) {
		chunks, err := decode(wire.Limits{ContentBytes: 1 << 20}, first, second)
		if _, ok := err.(*llm.Error); err != nil && !ok {
			t.Errorf("error = %T, want *llm.Error", err)
		}
		var collector llm.Collector
		for i, chunk := range chunks {
			collector.Add(chunk)
			switch chunk := chunk.(type) {
			case llm.TextDelta:
				wantText(t, chunk.Text)
			case llm.ReasoningDelta:
				wantText(t, chunk.Text)
			case llm.ReasoningEnd:
				if chunk.Data != nil && !json.Valid(chunk.Data) {
					t.Errorf("content to send back = %q, want JSON", chunk.Data)
				}
			case llm.ToolCallStart:
				wantText(t, chunk.ID)
				wantText(t, chunk.Name)
			case llm.ToolCallDelta:
				wantText(t, chunk.Arguments)
			case llm.Finish:
				if i != len(chunks)-1 {
					t.Error("chunk after the finish: got one, want none")
				}
			}
		}
		if (err == nil) != (collector.Finish() != nil) {
			t.Errorf("finish = %v and error = %v, want exactly one", collector.Finish(), err)
		}
	})
}

// wantText checks that a text is UTF-8 and not empty.
func wantText(t *testing.T, text string) {
	t.Helper()
	if text == "" || !utf8.ValidString(text) {
		t.Errorf("text = %q, want UTF-8 that is not empty", text)
	}
}
