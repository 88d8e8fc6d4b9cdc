package cli

import (
	"bytes"
	"testing"

	"github.com/perdure/perdure/agui"
)

// TestUsageLine: the usage of a run has a name, also if a remote agent has not reported its model.
func TestUsageLine(t *testing.T) {
	t.Parallel()
	in, out := int64(5), int64(7)
	for want, usage := range map[string]agui.TokenUsage{
		"gpt-5: 5 tokens in, 7 out\n":  {Provider: "openai", Model: "gpt-5"},
		"openai: 5 tokens in, 7 out\n": {Provider: "openai"},
		"usage: 5 tokens in, 7 out\n":  {},
	} {
		usage.InputTokens, usage.OutputTokens = &in, &out
		var b bytes.Buffer
		p := &page{w: &b, column: &column{}}
		newTranscript(p, p).showOutcome(&agui.RunFinished{Usage: []agui.TokenUsage{usage}})
		if b.String() != want {
			t.Errorf("usage line = %q, want %q", b.String(), want)
		}
	}
}
