package catalog

import (
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestDraftIsUsedConcurrently: a run uses a draft while another run marks it in a replicated bucket.
func TestDraftIsUsedConcurrently(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	revision, err := c.PutDraft(t.Context(), "acme", &agents.Definition{Name: "a", Model: "openai/m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.kv = streamtest.Contended(c.kv)
	if err := c.UseDraft(t.Context(), "acme", "a", revision); err != nil {
		t.Errorf("use: got %v, want none", err)
	}
}
