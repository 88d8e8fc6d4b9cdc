package llmtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

// testText checks that each text delta is one chunk, and that empty deltas are omitted.
func testText(t *testing.T, p Provider) {
	outcome := play(t, p, func(e Encoder) []string {
		return []string{e.Begin(), e.Text(`"One "`), e.Text(`""`), e.Text(`"two "`), e.Text(`"three"`), e.Finish(llm.FinishStop, llm.Usage{})}
	}).finished(t)
	var deltas []string
	for _, chunk := range outcome.Chunks {
		if delta, ok := chunk.(llm.TextDelta); ok {
			deltas = append(deltas, delta.Text)
		}
	}
	if diff := cmp.Diff([]string{"One ", "two ", "three"}, deltas); diff != "" {
		t.Errorf("text deltas (-want +got):\n%s", diff)
	}
}

// testEncoding checks that text and arguments are valid UTF-8, even if the server splits a
// character between two deltas or sends invalid bytes.
func testEncoding(t *testing.T, p Provider) {
	for name, test := range map[string]struct {
		literals []string
		want     string
	}{
		"escapes":                      {[]string{`"a\"b\\c\/\n\t"`, `"\u00e9\u20ac"`}, "a\"b\\c/\n\té€"},
		"surrogate pair in one delta":  {[]string{`"\ud83d\ude00"`}, "😀"},
		"surrogate pair in two deltas": {[]string{`"a\ud83d"`, `"\ude00b"`}, "a😀b"},
		"lone high surrogate":          {[]string{`"a\ud83d"`, `"b"`}, "a\uFFFDb"},
		"lone low surrogate":           {[]string{`"a\ude00"`, `"b"`}, "a\uFFFDb"},
		"high surrogate at the end":    {[]string{`"a\ud83d"`}, "a\uFFFD"},
		"rune in two deltas":           {[]string{"\"a\xe2\x82\"", "\"\xacb\""}, "a€b"},
		"rune in four deltas":          {[]string{"\"\xf0\"", "\"\x9f\"", "\"\x98\"", "\"\x80\""}, "😀"},
		"half a rune at the end":       {[]string{"\"a\xe2\x82\""}, "a\uFFFD"},
		"stray bytes":                  {[]string{"\"a\xffb\""}, "a\uFFFDb"},
		"half a rune, then text":       {[]string{"\"\xe2\"", `"b"`}, "\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := play(t, p, func(e Encoder) []string {
				events := []string{e.Begin()}
				for _, literal := range test.literals {
					events = append(events, e.Text(literal))
				}
				return append(events, e.Finish(llm.FinishStop, llm.Usage{}))
			}).finished(t).Message.Text()
			if text != test.want {
				t.Errorf("text is %q, want %q", text, test.want)
			}
			if p.WholeCalls {
				return
			}
			calls := play(t, p, func(e Encoder) []string {
				events := []string{e.Begin(), e.ToolCall(0, "a", "lookup")}
				for _, literal := range test.literals {
					events = append(events, e.Arguments(0, literal))
				}
				return append(events, e.Finish(llm.FinishToolCalls, llm.Usage{}))
			}).finished(t).Message.ToolCalls
			if len(calls) != 1 || calls[0].Arguments != test.want {
				t.Errorf("calls are %q, want one with the arguments %q", calls, test.want)
			}
		})
	}
}

// testReasoning checks that visible reasoning is separate from the text.
func testReasoning(t *testing.T, p Provider) {
	if p.NoReasoning {
		t.Skip("the protocol has no visible thinking")
	}
	outcome := play(t, p, func(e Encoder) []string {
		return []string{
			e.Begin(), e.Reasoning(`"Let me "`), e.Reasoning(`""`), e.Reasoning(`"see \ud83d"`), e.Reasoning(`"\ude00"`),
			e.Text(`"Yes."`), e.Finish(llm.FinishStop, llm.Usage{}),
		}
	}).finished(t)
	var thought strings.Builder
	for _, block := range outcome.Message.Reasoning {
		thought.WriteString(block.Text)
	}
	if got, want := thought.String(), "Let me see 😀"; got != want {
		t.Errorf("reasoning is %q, want %q", got, want)
	}
	if got := outcome.Message.Text(); got != "Yes." {
		t.Errorf("text is %q: reasoning must stay out of it", got)
	}
}

// testFinish checks the finish reasons and the token usage.
func testFinish(t *testing.T, p Provider) {
	for _, reason := range []llm.FinishReason{llm.FinishStop, llm.FinishLength, llm.FinishContentFilter} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			finish := play(t, p, func(e Encoder) []string {
				return []string{e.Begin(), e.Text(`"Hi"`), e.Finish(reason, llm.Usage{Input: number(11), Output: number(0), Total: number(11)})}
			}).finished(t).Finish
			if finish.Reason != reason {
				t.Errorf("reason is %q, want %q", finish.Reason, reason)
			}
			if diff := cmp.Diff([]*int64{number(11), number(0)}, []*int64{finish.Usage.Input, finish.Usage.Output}); diff != "" {
				t.Errorf("input and output tokens (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("parts of the usage", func(t *testing.T) {
		t.Parallel()
		want := llm.Usage{Input: number(110), Output: number(20), CachedInput: number(100), Reasoning: number(15)}
		got := play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.Text(`"Hi"`), e.Finish(llm.FinishStop, want)}
		}).finished(t).Finish.Usage
		got.Total = nil // not every provider reports it
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	})
	t.Run("no usage", func(t *testing.T) {
		t.Parallel()
		finish := play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.Text(`"Hi"`), e.Finish(llm.FinishStop, llm.Usage{})}
		}).finished(t).Finish
		if diff := cmp.Diff(llm.Usage{}, finish.Usage); diff != "" {
			t.Errorf("a usage that was not reported is not 0 (-want +got):\n%s", diff)
		}
	})
}
