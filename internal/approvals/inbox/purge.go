package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Purge removes all interrupts of a thread from the bucket: the open and decided ones, and their
// events, which have arguments of calls. It finds them by the audit in the log, so the caller
// purges the thread in the log afterwards.
func (s *Store) Purge(ctx context.Context, t stream.Thread) error {
	for rec, err := range s.log.Audit(ctx, t) {
		if err != nil {
			return err
		}
		var e Entry
		err := rec.Result(ctx, &e)
		if errors.Is(err, stream.ErrKeyDestroyed) {
			return nil // the thread's key was destroyed, after an earlier Purge of the inbox
		}
		if err != nil {
			return fmt.Errorf("inbox: purge: %w", err)
		}
		if err := s.Settle(ctx, t.Tenant, &e.Event.Approval); err != nil {
			return err
		}
		if e.Event.Type.Settles() {
			if err := s.kv.Purge(ctx, decidedKey(t.Tenant, &e.Event), jetstream.PurgeTTL(EventTTL)); err != nil {
				return asUnavailable(err)
			}
		}
		if err := s.kv.Purge(ctx, eventPrefix+stream.KeyToken(t.Tenant)+"."+rec.Step, jetstream.PurgeTTL(EventTTL)); err != nil {
			return asUnavailable(err)
		}
	}
	return nil
}
