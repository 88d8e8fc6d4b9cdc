package gemini

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// decode feeds the data of events to an answer.
func decode(limits wire.Limits, events ...string) ([]llm.Chunk, error) {
	a := newAnswer(newModel(Config{}, limits), &llm.Request{Model: "asked"})
	var chunks []llm.Chunk
	for _, data := range events {
		if err := a.Read([]byte(data + "\n")); err != nil {
			return chunks, err
		}
		chunks = append(chunks, a.Take()...)
	}
	err := a.End(nil)
	return append(chunks, a.Take()...), err
}

// finish returns the finish of an answer.
func finish(reason llm.FinishReason, usage llm.Usage) llm.Finish {
	return llm.Finish{Reason: reason, Usage: usage, Model: "asked", Provider: "gemini"}
}

const stop = `{"candidates":[{"finishReason":"STOP"}]}`

func TestAnswer(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	end := func(data string) llm.ReasoningEnd {
		return llm.ReasoningEnd{Provider: "gemini", Data: json.RawMessage(data)}
	}
	for name, test := range map[string]struct {
		events []string
		want   []llm.Chunk
	}{
		"usage, growing, after the finish reason too": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":120,"totalTokenCount":120},"modelVersion":"real"}`,
				stop,
				`{"usageMetadata":{"promptTokenCount":120,"cachedContentTokenCount":100,"candidatesTokenCount":5,"thoughtsTokenCount":4,"totalTokenCount":129}}`,
			},
			[]llm.Chunk{llm.UsageReport{
				Model: "real", Provider: "gemini", Usage: llm.Usage{Input: n(120), Total: n(120)},
			}, llm.TextDelta{Text: "Hi"}, llm.Finish{
				Reason: llm.FinishStop, Model: "real", Provider: "gemini",
				Usage: llm.Usage{Input: n(120), CachedInput: n(100), Output: n(9), Reasoning: n(4), Total: n(129)},
			}},
		},
		"thoughts alone are output": {
			[]string{`{"candidates":[{"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":-1,"thoughtsTokenCount":4}}`},
			[]llm.Chunk{finish(llm.FinishLength, llm.Usage{Output: n(4), Reasoning: n(4)})},
		},
		"signatures on calls and on text": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true},{"text":"é"},{"text":"ab","thoughtSignature":"s1"}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x": 1.0}},"thoughtSignature":"s2"},{"functionCall":{"id":"b","name":"g"}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s3"},{"text":"Oh","thought":true,"thoughtSignature":"s4"}]},"finishReason":"STOP"}]}`,
			},
			[]llm.Chunk{
				llm.ReasoningDelta{Text: "Hm"}, llm.TextDelta{Text: "é"}, llm.TextDelta{Text: "ab"}, end(`{"signature":"s1","on":"text","length":2,"text":2}`),
				end(`{"signature":"s2","on":"call","text":4}`),
				llm.ToolCallStart{Index: 0, ID: "call_1", Name: "f"}, llm.ToolCallDelta{Index: 0, Arguments: `{"x": 1.0}`},
				llm.ToolCallStart{Index: 1, ID: "b", Name: "g"}, llm.ToolCallDelta{Index: 1, Arguments: `{}`},
				end(`{"signature":"s3","on":"text","text":4,"calls":2}`),
				llm.ReasoningDelta{Text: "Oh"}, end(`{"signature":"s4","on":"thought","text":4,"calls":2}`),
				finish(llm.FinishToolCalls, llm.Usage{}),
			},
		},
		"a character cut in two, in thoughts": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"a\ud83d","thought":true}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"\ude00","thought":true},{"text":"\ud83d","thought":true},{"text":"Hi"}]}}]}`, stop,
			},
			[]llm.Chunk{llm.ReasoningDelta{Text: "a"}, llm.ReasoningDelta{Text: "😀"}, llm.ReasoningDelta{Text: "\uFFFD"}, llm.TextDelta{Text: "Hi"}, finish(llm.FinishStop, llm.Usage{})},
		},
		"other candidates, parts that we do not know, a finish of tomorrow": {
			[]string{`{"error":null,"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"STOP"},{"index":0,"content":{"parts":[{"executableCode":{"code":"1"}}]},"finishReason":"TOMORROW"}]}`},
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

// TestRoundTrip: the parts of an answer are sent back unchanged, part by part.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	const parts = `[{"text":"é"},{"text":"ab","thoughtSignature":"s1"},{"text":" "},{"text":"c","thoughtSignature":"s2"},
		{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"s3"},{"functionCall":{"id":"b","name":"g","args":{}}},{"text":"","thoughtSignature":"s4"}]`
	chunks, err := decode(wire.Limits{}, `{"candidates":[{"content":{"parts":`+strings.ReplaceAll(parts, "\n", "")+`},"finishReason":"STOP"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	var collector llm.Collector
	for _, chunk := range chunks {
		collector.Add(chunk)
	}
	want := strings.Replace(parts, `{"text":" "},`, "", 1) // the blank part has no content
	equalJSON(t, `[{"role":"user","parts":[{"text":"1"}]},{"role":"model","parts":`+want+`}]`, contentsOf(t, "gemini-3-pro", textMessage(llm.RoleUser, "1"), collector.Message()))
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]llm.FinishReason{
		"STOP": llm.FinishStop, "FUNCTION_CALL": llm.FinishStop, "MAX_TOKENS": llm.FinishLength, "SAFETY": llm.FinishContentFilter, "RECITATION": llm.FinishContentFilter,
		"BLOCKLIST": llm.FinishContentFilter, "PROHIBITED_CONTENT": llm.FinishContentFilter, "SPII": llm.FinishContentFilter, "LANGUAGE": llm.FinishOther, "OTHER": llm.FinishOther,
	} {
		if got := finishReason(reason); got != want {
			t.Errorf("%s is %q, want %q", reason, got, want)
		}
	}
}

func TestFaultsInStream(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]llm.Error{
		`{"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}`:                                                         {Code: llm.CodeUnavailable, Status: 503, Message: "no"},
		`{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}`: {Code: llm.CodeRateLimited, Status: 429, Message: "no", RetryAfter: 34500 * time.Millisecond},
		`{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`:                                                    {Code: llm.CodeInvalidRequest, Status: 400, Message: "no"},
		`{"error":{"code":499,"message":"no","status":"CANCELLED"}}`:                                                           {Code: llm.CodeUnavailable, Status: 499, Message: "no"},
		`{"error":"no"}`: {Code: llm.CodeUnavailable, Message: "no"},
		`{"error":[]}`:   {Code: llm.CodeUnavailable},
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                                                     {Code: llm.CodeContentFilter, Message: "the prompt is blocked: SAFETY"},
		`{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"no"}}`:                            {Code: llm.CodeContentFilter, Message: "no"},
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`:                                     {Code: llm.CodeMalformedResponse, Message: "the model wrote an invalid tool call"},
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"STOP"}]}`:              {Code: llm.CodeMalformedResponse, Message: "a tool call has no name"},
		`{"candidates":[{"content":{"parts":[{"text":"aaaaaaaaaaaaaaaa"}]}}]}`:                            {Code: llm.CodeResponseTooLarge, Message: "the completion has more than 15 bytes"},
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x":"aaaaaaaaa"}}}]}}]}`: {Code: llm.CodeResponseTooLarge, Message: "the completion has more than 15 bytes"},
		`["x"]`:            {Code: llm.CodeMalformedResponse, Message: "an event of the stream does not fit the API"},
		`{"candidates":1}`: {Code: llm.CodeMalformedResponse, Message: "an event of the stream does not fit the API"},
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

func TestEvents(t *testing.T) {
	t.Parallel()
	stream := ": a comment\r\n\r\nevent: x\r\ndata: 1\r\ndata:2\r\n\r\n\n\ndata: 3\n\ndata: no end"
	events := newEvents(iotest.OneByteReader(strings.NewReader(stream)), 1<<10)
	var got []string
	for events.Next() {
		got = append(got, string(events.Event()))
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{" 1\n2\n", " 3\n"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// FuzzAnswer: for any output of the server, the chunks keep the rules.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"candidates":[{"content":{"parts":[{"text":"\ud83d","thoughtSignature":"\xff"}]}}]}`, stop)
	f.Add(`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"f","args":{"x":"\xff"}}}]}}]}`, stop)
	f.Add(`{"candidates":[{"content":{"parts":[{"text":"\xff","thought":true}]}}]}`, stop)
	f.Add(`{"error":{"message":5}}`, `{`)
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
				if !json.Valid(chunk.Data) {
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
