package llmtest

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/llm"
)

// Provider is the provider under test. All fields are required unless they
// say otherwise.
type Provider struct {
	// New returns the provider, with its default limits, for an endpoint.
	New func(Endpoint) llm.Model

	// NewEncoder returns what writes one response.
	NewEncoder func() Encoder

	// ErrorBody is the body of a refused request in the provider's form, with
	// the message and no code that says more than the HTTP status.
	ErrorBody func(message string) string

	// NoReasoning says that the protocol has no visible thinking. Optional.
	NoReasoning bool

	// WholeCalls says that the protocol has tool calls whole only: arguments are
	// a JSON object and come at once. The encoder then collects what ToolCall
	// and Arguments say until Finish. Optional.
	WholeCalls bool
}

// Endpoint is what a provider is to talk to.
type Endpoint struct {
	BaseURL string
	APIKey  string
	Client  *http.Client
}

// Encoder writes one response in the provider's protocol. Each method returns
// complete events, blank line included; a literal is a JSON string literal
// with its quotes, to be put in as it is, since it may be broken on purpose.
type Encoder interface {
	// Begin is what comes before all content.
	Begin() string
	// Text is a delta of text.
	Text(literal string) string
	// Reasoning is a delta of visible thinking.
	Reasoning(literal string) string
	// ToolCall opens a call. The id is left out if it is empty.
	ToolCall(index int, id, name string) string
	// Arguments is a delta of a call's arguments.
	Arguments(index int, literal string) string
	// Finish is all that ends a completion. Nil counts are left out.
	Finish(reason llm.FinishReason, usage llm.Usage) string
	// Fault is an error object in the stream, of an overloaded server.
	Fault(message string) string
}

// Run runs the suite against p.
func Run(t *testing.T, p Provider) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	// A group, so that all parallel parts are over when the leaks are counted.
	t.Run("conformance", func(t *testing.T) {
		for _, part := range []struct {
			name string
			test func(*testing.T, Provider)
		}{
			{"text", testText},
			{"encoding", testEncoding},
			{"reasoning", testReasoning},
			{"sealed reasoning", testSealed},
			{"finish", testFinish},
			{"output", testOutput},
			{"tool calls", testToolCalls},
			{"broken streams", testBrokenStreams},
			{"statuses", testStatuses},
			{"explained", testExplained},
			{"secrets", testSecrets},
			{"limits", testLimits},
			{"life", testLife},
		} {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel()
				part.test(t, p)
			})
		}
	})
}
