package decisions

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// TestEditToEqualArgumentsApproves: an edit to the model's own arguments is a vote for
// them. Otherwise a quorum would have two proposals with equal arguments.
func TestEditToEqualArgumentsApproves(t *testing.T) {
	t.Parallel()
	const written = `{"amount": 60}`
	by, err := json.Marshal(stream.ApprovalSource{ArgsDigest: runs.DigestArgs(written)})
	if err != nil {
		t.Fatal(err)
	}
	interrupt := &agui.Interrupt{ID: "i", ToolCallID: "c", Metadata: agui.Metadata{stream.MetadataApproval: by}}
	for name, c := range map[string]struct{ arguments, edit, wantDecision string }{
		"as written":               {written, `{"amount": 60}`, "approve"},
		"other white space":        {written, `{"amount":60}`, "approve"},
		"another value":            {written, `{"amount":61}`, "edit"},
		"an edit that was decided": {`{"amount":40}`, `{"amount":40}`, "edit"},
	} {
		thread := &snapshot.Snapshot{Entries: []snapshot.Entry{{Message: agui.Message{ToolCalls: []agui.ToolCall{{ID: "c", Name: "pay", Arguments: c.arguments}}}}}}
		v, err := Request{Decision: "edit", Args: json.RawMessage(c.edit)}.normalize(thread, interrupt, "")
		if err != nil || v.Decision != c.wantDecision || (v.Args == nil) != (c.wantDecision == "approve") {
			t.Errorf("%s: got %+v, %v, want the decision %s", name, v, err, c.wantDecision)
		}
	}
}
