package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Entry is the content of an audit record in the log: one event of an interrupt. Only the entry of
// the event "opened" has the call's arguments.
type Entry struct {
	Tenant string `json:"tenant"`
	Event  Event  `json:"event"`
}

// restoredKey is a key that exists if the bucket has everything that the log has. A new bucket does
// not have it.
const restoredKey = "restored"

// Restore fills a bucket that was created anew from the audit records of the log. If the bucket is
// complete, it does nothing. Any number of processes may call it concurrently, and workers may
// write meanwhile. It reads the audit of all threads, and holds the open interrupts in memory.
func (s *Store) Restore(ctx context.Context) error {
	_, err := s.kv.Get(ctx, restoredKey)
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return asUnavailable(err)
	}
	open, err := s.openEntries(ctx)
	if err != nil {
		return err
	}
	for _, e := range open {
		if err := s.Put(ctx, e.Tenant, &e.Event.Approval, e.Event.At); err != nil {
			return err
		}
	}
	_, err = s.kv.PutString(ctx, restoredKey, s.log.Epoch())
	return asUnavailable(err)
}

// openEntries returns the last entry of each open interrupt, by its pending key. It archives the
// decided ones.
func (s *Store) openEntries(ctx context.Context) (map[string]*Entry, error) {
	open := map[string]*Entry{}
	for rec, err := range s.log.AuditAll(ctx) {
		if err != nil {
			return nil, err
		}
		e := new(Entry)
		err = rec.Result(ctx, e)
		if errors.Is(err, stream.ErrGone) {
			continue // the thread is being purged
		}
		if err != nil {
			return nil, fmt.Errorf("inbox: restore: %w", err)
		}
		key := pendingKey(e.Tenant, &e.Event.Approval)
		if e.Event.Type.Settles() {
			if err := s.Archive(ctx, e.Tenant, &e.Event); err != nil {
				return nil, err
			}
			delete(open, key)
			continue
		}
		if before := open[key]; before != nil {
			e.Event.Approval.Args = before.Event.Approval.Args
		}
		open[key] = e
	}
	return open, nil
}
