package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

// testLimits checks that a model or server that never stops cannot exhaust the caller's memory. It
// uses the provider's default limits.
func testLimits(t *testing.T, p Provider) {
	large := literal(strings.Repeat("0123456789abcdef", 1<<14)) // 256 KiB
	t.Run("endless text", func(t *testing.T) {
		t.Parallel()
		testEndless(t, endless(t, p, func(e Encoder) string { return e.Text(large) }))
	})
	t.Run("endless arguments", func(t *testing.T) {
		t.Parallel()
		skipWholeCalls(t, p)
		testEndless(t, endless(t, p, func(e Encoder) string { return e.Arguments(0, large) }))
	})
	t.Run("endless comments", func(t *testing.T) {
		t.Parallel()
		comments := strings.Repeat(": "+strings.Repeat("still here ", 1<<8)+"\n\n", 1<<6)
		endless(t, p, func(Encoder) string { return comments }).failed(t, llm.CodeResponseTooLarge)
	})
	t.Run("endless line", func(t *testing.T) {
		t.Parallel()
		endless(t, p, func(Encoder) string { return large }).failed(t, llm.CodeResponseTooLarge)
	})
	t.Run("endless tool calls", func(t *testing.T) {
		t.Parallel()
		play(t, p, func(e Encoder) []string {
			calls := []string{e.Begin()}
			for i := range 1000 {
				calls = append(calls, e.ToolCall(i, "", "lookup"))
			}
			return append(calls, e.Finish(llm.FinishToolCalls, llm.Usage{}))
		}).failed(t, llm.CodeResponseTooLarge)
	})
	t.Run("endless error body", func(t *testing.T) {
		t.Parallel()
		serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, large)
			}
		}).failed(t, llm.CodeUnavailable)
	})
}

// maxKept is the maximum content, in bytes, of one completion that a caller has to hold.
const maxKept = 32 << 20

// testEndless checks that an endless stream fails with [llm.CodeResponseTooLarge] before maxKept.
func testEndless(t *testing.T, s *server) {
	t.Helper()
	outcome := s.ask(t)
	if failure := asError(t, outcome.Err); failure.Code != llm.CodeResponseTooLarge {
		t.Errorf("failed with %v, want %q", failure, llm.CodeResponseTooLarge)
	}
	kept := len(outcome.Message.Text())
	for _, call := range outcome.Message.ToolCalls {
		kept += len(call.Arguments)
	}
	if kept > maxKept {
		t.Errorf("%d bytes were delivered before the limit, want at most %d", kept, maxKept)
	}
}

// endless starts a server that opens a tool call and then sends the same piece until the client
// closes the connection.
func endless(t *testing.T, p Provider, piece func(Encoder) string) *server {
	t.Helper()
	return serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
		e := p.NewEncoder()
		events(w, e.Begin(), e.ToolCall(0, "a", "lookup"))
		event := piece(e)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, event)
		}
	})
}
