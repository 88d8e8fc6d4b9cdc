package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Entry is what the audit of a run has of one event, in the log. The arguments are in the first one
// only.
type Entry struct {
	Tenant string `json:"tenant"`
	Event  Event  `json:"event"`
}

// restoredKey says that the bucket has what the log has: it is not there in one that was made anew.
const restoredKey = "restored"

// Restore derives what is pending from the log, if the bucket was made anew since, and does nothing
// otherwise. Any number of processes may do so at the same time, and beside those who write. It
// reads the audit of all threads, and keeps in memory what is pending.
func (s *Store) Restore(ctx context.Context) error {
	_, err := s.kv.Get(ctx, restoredKey)
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return asUnavailable(err)
	}
	open, err := s.open(ctx)
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

// open returns the last entries about what nothing settled. It archives the rest.
func (s *Store) open(ctx context.Context) (map[string]*Entry, error) {
	open := map[string]*Entry{}
	for rec, err := range s.log.AuditAll(ctx) {
		if err != nil {
			return nil, err
		}
		e := new(Entry)
		if err := rec.Result(ctx, e); err != nil {
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
