package catalog

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream/streamtest"
)

// contended is a replicated bucket that refuses its first update, because another one of the key is on the
// way to the replicas.
type contended struct {
	jetstream.KeyValue
	refuse sync.Once
}

// Update implements [jetstream.KeyValue].
func (c *contended) Update(ctx context.Context, key string, value []byte, revision uint64) (n uint64, err error) {
	c.refuse.Do(func() {
		conflict := &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant, Description: "wrong last sequence"}
		err = fmt.Errorf("%w: %w", conflict, jetstream.ErrKeyRevisionMismatch)
	})
	if err != nil {
		return 0, err
	}
	return c.KeyValue.Update(ctx, key, value, revision)
}

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
	c.kv = &contended{KeyValue: c.kv}
	if err := c.UseDraft(t.Context(), "acme", "a", revision); err != nil {
		t.Errorf("use: got %v, want none", err)
	}
}
