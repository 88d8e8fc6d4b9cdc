package openai

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// decode feeds the data of events to an answer.
func decode(limits wire.Limits, events ...string) ([]llm.Chunk, error) {
	a := newAnswer(newModel(Config{APIKey: "k"}, limits), &llm.Request{Model: "asked"})
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
	return llm.Finish{Reason: reason, Usage: usage, Model: "asked", Provider: "openai"}
}

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// compatibleAnswers are deviations of other servers from OpenAI's format.
var compatibleAnswers = map[string]struct {
	events []string
	want   []llm.Chunk
}{
	"an error of null": {
		[]string{`{"error":null,"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, stop},
		[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finish(llm.FinishStop, llm.Usage{})},
	},
	"no [DONE], content with the finish reason": {
		[]string{`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`},
		[]llm.Chunk{llm.TextDelta{Text: "Hi"}, finish(llm.FinishStop, llm.Usage{})},
	},
	"[DONE] without usage": {
		[]string{stop, `[DONE]`},
		[]llm.Chunk{finish(llm.FinishStop, llm.Usage{})},
	},
	"usage in every chunk, growing": {
		[]string{
			`{"model":"real","choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`,
			stop,
			`{"model":"real","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}}`,
		},
		[]llm.Chunk{llm.UsageReport{
			Model: "real", Provider: "openai", Usage: llm.Usage{Input: new(int64(5)), Output: new(int64(1)), Total: new(int64(6))},
		}, llm.TextDelta{Text: "Hi"}, llm.Finish{
			Reason: llm.FinishStop, Model: "real", Provider: "openai",
			Usage: llm.Usage{Input: new(int64(5)), Output: new(int64(2)), Total: new(int64(7)), CachedInput: new(int64(4)), CacheWrite: new(int64(0)), Reasoning: new(int64(1))},
		}},
	},
	"thinking in both members": {
		[]string{`{"choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_content":"Hm"}}]}`, `{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, stop},
		[]llm.Chunk{llm.ReasoningDelta{Text: "Hm"}, llm.ReasoningEnd{Provider: "openai", Data: json.RawMessage(`"reasoning_content"`)}, llm.TextDelta{Text: "Hi"}, finish(llm.FinishStop, llm.Usage{})},
	},
	"thinking between calls": {
		[]string{
			`{"choices":[{"index":0,"delta":{"reasoning":"A","reasoning_content":null}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"B"}}]}`,
			stop,
		},
		[]llm.Chunk{
			llm.ReasoningDelta{Text: "A"},
			llm.ReasoningEnd{Provider: "openai", Data: json.RawMessage(`"reasoning"`)},
			llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"},
			llm.ReasoningDelta{Text: "B"},
			llm.ReasoningEnd{Provider: "openai", Data: json.RawMessage(`"reasoning"`)},
			finish(llm.FinishToolCalls, llm.Usage{}), // although the server sent stop
		},
	},
	"one index for all calls": {
		[]string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}`,
			stop,
		},
		[]llm.Chunk{
			llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"},
			llm.ToolCallStart{Index: 1, ID: "b", Name: "g"}, llm.ToolCallDelta{Index: 1, Arguments: "{}"},
			finish(llm.FinishToolCalls, llm.Usage{}),
		},
	},
	"no index": {
		[]string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"b","function":{"name":"g","arguments":"2"}}]}}]}`, stop},
		[]llm.Chunk{
			llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "1"},
			llm.ToolCallStart{Index: 1, ID: "b", Name: "g"}, llm.ToolCallDelta{Index: 1, Arguments: "2"},
			finish(llm.FinishToolCalls, llm.Usage{}),
		},
	},
	"a new id with each piece": {
		[]string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"}"}}]}}]}`,
			stop,
		},
		[]llm.Chunk{
			llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{"}, llm.ToolCallDelta{Index: 0, Arguments: "}"},
			finish(llm.FinishToolCalls, llm.Usage{}),
		},
	},
	"arguments before the name": {
		[]string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]}}]}`,
			stop,
		},
		[]llm.Chunk{llm.ToolCallStart{Index: 0, ID: "a", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: "{}"}, finish(llm.FinishToolCalls, llm.Usage{})},
	},
	"a refusal": {
		[]string{`{"choices":[{"index":0,"delta":{"refusal":""}}]}`, `{"choices":[{"index":0,"delta":{"refusal":"I cannot."}}]}`, stop},
		[]llm.Chunk{llm.TextDelta{Text: "I cannot."}, finish(llm.FinishContentFilter, llm.Usage{})},
	},
	"an empty refusal": {
		[]string{`{"choices":[{"index":0,"delta":{"content":"Yes.","refusal":""}}]}`, stop},
		[]llm.Chunk{llm.TextDelta{Text: "Yes."}, finish(llm.FinishStop, llm.Usage{})},
	},
	"other choices, a refusal, an unknown reason": {
		[]string{`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":null,"refusal":"I cannot."},"finish_reason":"eos"}]}`},
		[]llm.Chunk{llm.TextDelta{Text: "I cannot."}, finish(llm.FinishOther, llm.Usage{})},
	},
}

// TestAnswersOfCompatibleServers pins the chunks of compatibleAnswers.
func TestAnswersOfCompatibleServers(t *testing.T) {
	t.Parallel()
	for name, test := range compatibleAnswers {
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

// streamedFaults are the errors of events.
var streamedFaults = map[string]llm.Error{
	`{"error":{"message":"no","code":"context_length_exceeded"}}`:                                    {Code: llm.CodeContextLength, Message: "no"},
	`{"error":{"message":"no","type":"invalid_request_error"}}`:                                      {Code: llm.CodeInvalidRequest, Message: "no"},
	`{"error":{"message":"no","code":429}}`:                                                          {Code: llm.CodeRateLimited, Status: 429, Message: "no"},
	`{"error":{"message":"no","code":"502"},"choices":[{"index":0,"delta":{},"finish_reason":"x"}]}`: {Code: llm.CodeUnavailable, Status: 502, Message: "no"},
	`{"error":"no"}`: {Code: llm.CodeUnavailable, Message: "no"},
	`{"error":{}}`:   {Code: llm.CodeUnavailable},
	`["x"]`:          {Code: llm.CodeMalformedResponse, Message: "an event of the stream is not a JSON object"},
	`null`:           {Code: llm.CodeMalformedResponse, Message: "an event of the stream is not a JSON object"},
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1,"function":{"name":"f"}}]}}]}`: {Code: llm.CodeMalformedResponse, Message: "a tool call has a negative index"},
}

func TestFaultsInStream(t *testing.T) {
	t.Parallel()
	for data, want := range streamedFaults {
		_, err := decode(wire.Limits{}, data)
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
	f.Add(`{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`, stop)
	f.Add(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"\xff"}}]}}]}`, stop)
	f.Add(`{"error":{"message":5}}`, `[DONE]`)
	f.Add(`{"choices":{"delta":[]},"usage":{"prompt_tokens":"x"}}`, `{`)
	f.Fuzz(func(t *testing.T, first, second string) {
		chunks, err := decode(wire.Limits{ContentBytes: 1 << 20}, first, second)
		if _, ok := err.(*llm.Error); err != nil && !ok {
			t.Errorf("error = %T, want *llm.Error", err)
		}
		wantRules(t, chunks, err)
	})
}

// wantRules checks the rules for the chunks of any completion.
func wantRules(t *testing.T, chunks []llm.Chunk, err error) {
	t.Helper()
	var collector llm.Collector
	for i, chunk := range chunks {
		collector.Add(chunk)
		switch chunk := chunk.(type) {
		case llm.TextDelta:
			wantText(t, chunk.Text)
		case llm.ReasoningDelta:
			wantText(t, chunk.Text)
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
}

// wantText checks that a text is UTF-8 and not empty.
func wantText(t *testing.T, text string) {
	t.Helper()
	if text == "" || !utf8.ValidString(text) {
		t.Errorf("text = %q, want UTF-8 that is not empty", text)
	}
}
