package stream

import (
	"fmt"

	"github.com/perdure/perdure/agui"
)

// verdictResult is what a result of the client's is called among decisions.
const verdictResult = "result"

// ClientResult is what a client says came of a tool call of its own, as a decision about the call. However
// it came, the same result has the same digest: it is over the call, the content and the error.
func ClientResult(m *agui.Message) (*Decision, [32]byte) {
	said := agui.Message{ID: m.ToolCallID, Role: agui.RoleTool, ToolCallID: m.ToolCallID, Content: m.Content, Error: m.Error}
	return &Decision{CallID: m.ToolCallID, Verdict: verdictResult, Result: &said}, said.Digest()
}

// ResultDigest is that digest as decisions have it.
func ResultDigest(m *agui.Message) string {
	_, digest := ClientResult(m)
	return fmt.Sprintf("%x", digest)
}
