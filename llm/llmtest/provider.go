package llmtest

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/llm"
)

// Provider describes the provider under test. All fields are required unless they are marked
// optional.
type Provider struct {
	// New returns the provider for an endpoint, with its default limits.
	New func(Endpoint) llm.Model

	// NewEncoder returns the encoder for one response.
	NewEncoder func() Encoder

	// ErrorBody returns the body of an error response in the provider's format, with the message.
	// It contains no error code that is more specific than the HTTP status.
	ErrorBody func(message string) string

	// NoReasoning is true if the protocol has no visible reasoning. Optional.
	NoReasoning bool

	// WholeCalls is true if the protocol sends tool calls only as a whole, with a JSON object as
	// arguments. The encoder then collects the calls of ToolCall and Arguments until Finish.
	// Optional.
	WholeCalls bool
}

// Endpoint is the server that the provider must send its requests to.
type Endpoint struct {
	BaseURL string       // of the server, without a path
	APIKey  string       // must not appear in errors
	Client  *http.Client // for all requests; the suite closes its connections
}

// Encoder writes one response in the provider's protocol. Each method returns complete events,
// including their blank lines. A literal is a JSON string literal with its quotes. The encoder
// inserts it unchanged, because some tests use invalid literals. One goroutine uses an Encoder, and
// calls Begin first.
type Encoder interface {
	// Begin returns the events before all content.
	Begin() string
	// Text returns a text delta.
	Text(literal string) string
	// Reasoning returns a delta of visible reasoning.
	Reasoning(literal string) string
	// ToolCall returns the start of a tool call. An empty id is omitted.
	ToolCall(index int, id, name string) string
	// Arguments returns a delta of the arguments of the call with that index.
	Arguments(index int, literal string) string
	// Finish returns all events that end a completion. Nil counts of usage are omitted.
	Finish(reason llm.FinishReason, usage llm.Usage) string
	// Fault returns an error event of an overloaded server.
	Fault(message string) string
}

// Run runs the suite against p as subtests of t.
func Run(t *testing.T, p Provider) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	// The group makes Run wait for all parallel subtests before it checks for leaks.
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
