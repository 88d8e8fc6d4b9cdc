package approvalroutes

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// TestLinkPage: the page of a link names the agent, the step and the interrupt. An
// approval step of a pipeline has a message, no tool, and often no arguments.
func TestLinkPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source     stream.ApprovalSource
		tool, args string
		want       linkPage
	}{
		"a call":       {stream.ApprovalSource{Agent: "support"}, "refund", `{"n":1}`, linkPage{Agent: "support", Tool: "refund", Args: "{\n  \"n\": 1\n}"}},
		"a step":       {stream.ApprovalSource{Agent: "shop", Step: "check"}, pipeline.ApproveTool, `{}`, linkPage{Agent: "shop", Step: "check"}},
		"with figures": {stream.ApprovalSource{Agent: "shop", Step: pipeline.LimitPath}, pipeline.ApproveTool, `{"used":1}`, linkPage{Agent: "shop", Args: "{\n  \"used\": 1\n}"}},
	} {
		asked, err := json.Marshal(c.source)
		if err != nil {
			t.Fatal(err)
		}
		q := &decisions.Interrupt{Interrupt: agui.Interrupt{Message: "Ship it?", Metadata: agui.Metadata{stream.MetadataApproval: asked}}, Thread: &snapshot.Snapshot{}}
		q.Call.Name, q.Call.Arguments = c.tool, c.args
		c.want.Decision, c.want.Subject, c.want.Message, c.want.Thread = "approve", "ada", "Ship it?", "t1"
		if got, err := linkPageOf(links.Link{Decision: "approve", Thread: "t1"}, "ada", q); err != nil || got != c.want {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, c.want)
		}
	}
}
