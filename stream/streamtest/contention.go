package streamtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// Contended returns a bucket that refuses its first update like a replicated one: another write of the key is
// on the way to the replicas, for which JetStream has an error code of its own.
func Contended(bucket jetstream.KeyValue) jetstream.KeyValue {
	return &contended{KeyValue: bucket}
}

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
