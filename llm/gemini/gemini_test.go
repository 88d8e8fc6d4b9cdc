package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
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
	NewEncoder: func() llmtest.Encoder { return &encoder{} },
	ErrorBody: func(message string) string {
		return fmt.Sprintf(`{"error":{"code":0,"message":%q,"status":"UNKNOWN"}}`, message)
	},
	WholeCalls: true,
}

// encoder writes streamed contents in Google's format.
type encoder struct{ calls []writtenCall }

type writtenCall struct{ id, name, arguments string }

var _ llmtest.Sealer = (*encoder)(nil)

func (*encoder) Begin() string { return parts(`{"text":""}`) }

func (*encoder) Text(literal string) string { return parts(`{"text":` + literal + `}`) }

func (*encoder) Reasoning(literal string) string {
	return parts(`{"text":` + literal + `,"thought":true}`)
}

func (*encoder) Seal(opaque string) string {
	return parts(fmt.Sprintf(`{"text":"","thoughtSignature":%q}`, opaque))
}

func (e *encoder) ToolCall(_ int, id, name string) string {
	e.calls = append(e.calls, writtenCall{id: id, name: name})
	return ""
}

func (e *encoder) Arguments(index int, literal string) string {
	piece, _ := wire.Unquote(literal)
	e.calls[index].arguments += piece
	return ""
}

func (e *encoder) Finish(reason llm.FinishReason, usage llm.Usage) string {
	var out strings.Builder
	for _, c := range e.calls {
		member := ""
		if c.id != "" {
			member = fmt.Sprintf(`"id":%q,`, c.id)
		}
		if c.arguments != "" {
			member += `"args":` + c.arguments + ","
		}
		out.WriteString(parts(fmt.Sprintf(`{"functionCall":{%s"name":%q}}`, member, c.name)))
	}
	stop := map[llm.FinishReason]string{
		llm.FinishStop: "STOP", llm.FinishToolCalls: "STOP", llm.FinishLength: "MAX_TOKENS", llm.FinishContentFilter: "SAFETY",
	}[reason]
	return out.String() + line(fmt.Sprintf(`{"candidates":[{"content":{"role":"model"},"finishReason":%q,"index":0}]%s,"modelVersion":"test-model-2026"}`, stop, encodeUsage(usage)))
}

// encodeUsage returns usage in the provider's format.
func encodeUsage(usage llm.Usage) string {
	if usage == (llm.Usage{}) {
		return ""
	}
	c := counts{Prompt: usage.Input, Candidates: usage.Output, Cached: usage.CachedInput, Thoughts: usage.Reasoning, Total: usage.Total}
	if usage.Reasoning != nil {
		candidates := *usage.Output - *usage.Reasoning // the API counts separately what llm.Usage counts together
		c.Candidates = &candidates
	}
	data, _ := json.Marshal(c)
	return `,"usageMetadata":` + string(data)
}

func (*encoder) Fault(message string) string {
	return line(fmt.Sprintf(`{"error":{"code":503,"message":%q,"status":"UNAVAILABLE"}}`, message))
}

// parts returns an answer with parts.
func parts(list string) string {
	return line(`{"candidates":[{"content":{"role":"model","parts":[` + list + `]},"index":0}],"modelVersion":"test-model-2026"}`)
}

// line returns a server-sent event.
func line(data string) string { return "data: " + data + "\r\n\r\n" }
