package sessions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream/streamtest"
)

// contended is a replicated stream that refuses messages while another one of the subject is on the way to
// the replicas.
type contended struct{ jetstream.JetStream }

// Publish implements the interface of jetstream.
func (contended) Publish(context.Context, string, []byte, ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return nil, &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant, Description: "wrong last sequence"}
}

// TestConflictInReplicatedBucket: two processes that change a session at once get a conflict, and no outage,
// also in a replicated bucket.
func TestConflictInReplicatedBucket(t *testing.T) {
	t.Parallel()
	b, err := openBucket(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	b.js = contended{b.js}
	if _, err := b.write(t.Context(), "k", []byte("{}"), time.Now().Add(time.Minute), 1); !errors.Is(err, errConflict) {
		t.Errorf("write: got %v, want %v", err, errConflict)
	}
}
