package store

import (
	"context"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream/streamtest"
)

// contended is a replicated stream that refuses its first message, because one of another process is on the
// way to the replicas.
type contended struct {
	jetstream.JetStream
	refuse sync.Once
}

// PublishMsg implements the interface of jetstream.
func (c *contended) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	c.refuse.Do(func() {
		err = &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant, Description: "wrong last sequence"}
	})
	if err != nil {
		return nil, err
	}
	return c.JetStream.PublishMsg(ctx, m, options...)
}

// TestConflictInReplicatedStream: an entry is recorded while another process appends to the same chain of a
// replicated stream.
func TestConflictInReplicatedStream(t *testing.T) {
	t.Parallel()
	l := open(t, streamtest.Open(t))
	l.js = &contended{JetStream: l.js}
	mustRecord(t, newWriter(t, l), OfTenant("acme"), audit.UploadFile, "t1")
}
