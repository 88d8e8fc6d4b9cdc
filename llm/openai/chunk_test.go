package openai

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// FuzzChunk compares the chunks of an answer with those of the same answer decoded with the types
// of the SDK. data has one event per line.
func FuzzChunk(f *testing.F) {
	for _, data := range chunkFixtures() {
		f.Add(data)
	}
	f.Fuzz(compareWithSDK)
}

// TestMistypedMembers is FuzzChunk for the fixtures in which one value has another type.
func TestMistypedMembers(t *testing.T) {
	t.Parallel()
	for _, data := range chunkFixtures() {
		for line := range strings.SplitSeq(data, "\n") {
			for _, place := range placesOf(line) {
				for _, value := range []string{
					`null`, `true`, `false`, `0`, `1`, `-1`, `1.9`, `1e3`, `1e19`, `-1e19`, `9007199254740993`, `""`, `"x"`, `"1"`, `"-0.5"`, `"9007199254740993"`,
					`[]`, `[null]`, `["x"]`, `[0,{}]`, `[{},{}]`, `[[]]`, `{}`, `{"x":0}`,
				} {
					compareWithSDK(t, line[:place.start]+value+line[place.end:]+"\n"+stop)
				}
			}
		}
	}
}

// compareWithSDK fails the test if the chunks or the error of an answer differ from those of an
// sdkAnswer.
func compareWithSDK(t *testing.T, data string) {
	t.Helper()
	if isAmbiguous(data) {
		return
	}
	model, req := newModel(Config{APIKey: "k"}, wire.Limits{ContentBytes: 1 << 20}), &llm.Request{Model: "asked"}
	want, wantErr := readLines(&sdkAnswer{newAnswer(model, req)}, data)
	got, err := readLines(newAnswer(model, req), data)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: chunks (-SDK +got):\n%s", data, diff)
	}
	if diff := cmp.Diff(wantErr, err); diff != "" {
		t.Errorf("%s: error (-SDK +got):\n%s", data, diff)
	}
}

// chunkFixtures returns answers of Chat Completions, with one event per line.
func chunkFixtures() []string {
	e := encoder{}
	whole := e.Begin() + e.Reasoning(`"Hm"`) + e.Text(`"a\ud83d"`) + e.Text(`"\ude00"`) + e.ToolCall(1, "a", "f") + e.Arguments(1, `"{\"n\":9007199254740993}"`) +
		e.Finish(llm.FinishToolCalls, llm.Usage{Input: new(int64(5)), Output: new(int64(2)), Reasoning: new(int64(1)), CachedInput: new(int64(4)), Total: new(int64(7))})
	fixtures := []string{strings.ReplaceAll(strings.ReplaceAll(whole, "data: ", ""), "\n\n", "\n")}
	for _, answer := range compatibleAnswers {
		fixtures = append(fixtures, strings.Join(answer.events, "\n"))
	}
	for event := range streamedFaults {
		fixtures = append(fixtures, event)
	}
	return append(fixtures, mistypedChunks...)
}

// place is the position of a value in a JSON document.
type place struct{ start, end int }

// placesOf returns the positions of all values in a document; none if it is no JSON.
func placesOf(document string) []place {
	if !json.Valid([]byte(document)) {
		return nil
	}
	var places []place
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.UseNumber()
	var walk func()
	walk = func() {
		before := int(decoder.InputOffset())
		start := before + len(document[before:]) - len(strings.TrimLeft(document[before:], " ,:"))
		token, _ := decoder.Token()
		if token == json.Delim('{') || token == json.Delim('[') {
			for decoder.More() {
				if token == json.Delim('{') {
					_, _ = decoder.Token() // the name
				}
				walk()
			}
			_, _ = decoder.Token()
		}
		places = append(places, place{start, int(decoder.InputOffset())})
	}
	walk()
	return places
}

// mistypedChunks have values of other types than the API defines, one event per line.
var mistypedChunks = []string{
	`{"choices":[{"index":"0","delta":{"content":"Hi"}}]}`,
	`{"choices":[{"index":0.9,"delta":{"content":"Hi"}}]}`,
	`{"choices":[{"index":true,"delta":{"content":"Hi"}}]}`,
	`{"choices":[{"index":[],"delta":{"content":"Hi"}}]}`,
	`{"choices":[{"index":null,"delta":{"content":"Hi"}}]}`,
	`{"choices":[{"delta":{"content":"Hi"}},"x"]}`,
	`{"choices":[null,{"delta":{"content":"Hi"}}]}`,
	`{"choices":{"delta":{"content":"Hi"}}}`,
	`{"choices":[{"delta":["Hi"],"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"content":["Hi"],"refusal":5,"reasoning":{}},"finish_reason":5}]}`,
	`{"choices":[{"delta":{"tool_calls":{"index":0}},"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"tool_calls":["x",{"id":"a","function":{"name":"f"}}]},"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"tool_calls":[null,{"id":"a","function":{"name":"f"}}]},"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":"1","id":5,"function":"f"}]},"finish_reason":"length"}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":"x","id":"a","function":{"name":"f","arguments":{}}}]},"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":1e3,"id":"a","function":{"name":"f"}}]}}]}`,
	`{"model":5,"usage":{"prompt_tokens":"5","completion_tokens":2.5,"total_tokens":true,"prompt_tokens_details":[],"completion_tokens_details":{"reasoning_tokens":-1}}}`,
	`{"model":"m","usage":[]}` + "\n" + stop,
	`{"usage":"5"}` + "\n" + stop,
	`{"usage":{}}` + "\n" + stop,
	`{"usage":{"prompt_tokens":9007199254740993,"completion_tokens":"9007199254740993","total_tokens":9.5e18}}` + "\n" + stop,
	`{"error":false}`,
	`{"choices":[{"logprobs":5,"delta":{"role":5,"audio":5,"function_call":[]}}],"created":"x","object":{},"moderation":5,"service_tier":[]}`,
}

// readLines feeds each line to an answer as an event.
func readLines(answer wire.Reply[ssestream.Event], data string) ([]llm.Chunk, error) {
	var chunks []llm.Chunk
	for line := range strings.SplitSeq(data, "\n") {
		if err := answer.Read(ssestream.Event{Data: []byte(line + "\n")}); err != nil {
			return chunks, err
		}
		chunks = append(chunks, answer.Take()...)
	}
	err := answer.End(nil)
	return append(chunks, answer.Take()...), err
}

// membersRead are the names of all members that the package reads from a chunk or a usage object.
var membersRead = []string{
	"model", "choices", "usage", "error", "index", "delta", "finish_reason", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "id", "function",
	"name", "arguments", "prompt_tokens", "prompt_tokens_details", "cached_tokens", "cache_write_tokens", "completion_tokens", "completion_tokens_details",
	"reasoning_tokens", "total_tokens", "input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details",
}

// isAmbiguous reports whether an event reads differently with the types of the SDK, which is intended:
//
//   - Of two members with one name, the SDK reads the first. encoding/json reads the last.
//   - The SDK distinguishes upper and lower case in names. encoding/json does not.
//   - Numbers beyond uint64 overflow in the SDK.
func isAmbiguous(data string) bool {
	for line := range strings.SplitSeq(data, "\n") {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if json.Valid([]byte(line)) && isAmbiguousValue(decoder) {
			return true
		}
	}
	return false
}

// isAmbiguousValue is isAmbiguous for the next value of valid JSON.
func isAmbiguousValue(decoder *json.Decoder) bool {
	token, _ := decoder.Token()
	switch token := token.(type) {
	case json.Number:
		return isHuge(token.String())
	case string:
		return isHuge(token)
	case json.Delim:
		seen := map[string]bool{}
		for decoder.More() {
			if token == '{' && isAmbiguousName(decoder, seen) || isAmbiguousValue(decoder) {
				return true
			}
		}
		_, _ = decoder.Token() // the end of the array or object
	}
	return false
}

// isAmbiguousName reports whether the next name of an object has another case than a member that
// the package reads, or repeats one. seen has the names before it.
func isAmbiguousName(decoder *json.Decoder, seen map[string]bool) bool {
	token, _ := decoder.Token()
	name, _ := token.(string)
	for _, member := range membersRead {
		if !strings.EqualFold(name, member) {
			continue
		}
		if name != member || seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

// isHuge reports whether a text is a number with a magnitude beyond uint64, or not a number (NaN).
func isHuge(number string) bool {
	value, err := strconv.ParseFloat(number, 64)
	return errors.Is(err, strconv.ErrRange) || err == nil && !(math.Abs(value) < math.MaxUint64)
}
