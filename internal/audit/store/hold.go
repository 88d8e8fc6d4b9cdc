package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Hold is a legal hold. A thread with a hold, or of a tenant with one, cannot be deleted. The audit
// entries of a tenant do not expire while the tenant, or one of its threads, has a hold.
type Hold struct {
	Reason string `json:"reason"`
	// By is the subject that has set the hold.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Held is what a hold is about: a thread, or all threads of the tenant if Thread is empty.
type Held struct{ Tenant, Thread string }

// key returns the key of a hold: <tenant>.<thread>, or <tenant>.= for the tenant. No token of a
// thread is "=".
func (h Held) key() string {
	if h.Thread == "" {
		return stream.KeyToken(h.Tenant) + ".="
	}
	return stream.KeyToken(h.Tenant) + "." + stream.KeyToken(h.Thread)
}

// Holds has all legal holds, in a key-value bucket. It is safe for concurrent use.
type Holds struct{ bucket jetstream.KeyValue }

// OpenHolds opens the holds, and creates their bucket if it is missing.
func OpenHolds(ctx context.Context, l *stream.Log) (*Holds, error) {
	bucket, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "holds", Description: "Perdure: legal holds", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	return &Holds{bucket: bucket}, nil
}

// Get returns the hold on a thread itself, or on a tenant itself; nil = there is none. Errors:
// stream.ErrUnavailable.
func (h *Holds) Get(ctx context.Context, held Held) (*Hold, error) {
	entry, err := h.bucket.Get(ctx, held.key())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("audit: read hold: %w: %w", stream.ErrUnavailable, err)
	}
	hold := new(Hold)
	if err := json.Unmarshal(entry.Value(), hold); err != nil {
		return nil, fmt.Errorf("audit: decode hold: %w", err)
	}
	return hold, nil
}

// On returns the hold that protects a thread: its own one, or that of its tenant; nil = there is
// none.
func (h *Holds) On(ctx context.Context, thread stream.Thread) (*Hold, error) {
	hold, err := h.Get(ctx, Held{Tenant: thread.Tenant, Thread: thread.ID})
	if hold != nil || err != nil {
		return hold, err
	}
	return h.Get(ctx, Held{Tenant: thread.Tenant})
}

// Held returns a function that reports whether a thread of a tenant has a hold, or the tenant has
// one. It answers from the holds at the time of the call of Held.
func (h *Holds) Held(ctx context.Context, tenant string) (func(thread string) bool, error) {
	all, err := h.keys(ctx, OfTenant(tenant))
	if err != nil {
		return nil, err
	}
	tenantKey := Held{Tenant: tenant}.key()
	return func(thread string) bool {
		return all[tenantKey] || all[Held{Tenant: tenant, Thread: thread}.key()]
	}, nil
}

// Set sets a hold, in place of an earlier one.
func (h *Holds) Set(ctx context.Context, held Held, hold Hold) error {
	raw, err := json.Marshal(hold)
	if err != nil {
		return fmt.Errorf("audit: encode hold: %w", err)
	}
	if _, err := h.bucket.Put(ctx, held.key(), raw); err != nil {
		return fmt.Errorf("audit: set hold: %w: %w", stream.ErrUnavailable, err)
	}
	return nil
}

// Release removes a hold, if there is one.
func (h *Holds) Release(ctx context.Context, held Held) error {
	if err := h.bucket.Delete(ctx, held.key()); err != nil {
		return fmt.Errorf("audit: release hold: %w: %w", stream.ErrUnavailable, err)
	}
	return nil
}

// any reports whether the tenant of a chain, or one of its threads, has a hold.
func (h *Holds) any(ctx context.Context, c Chain) (bool, error) {
	all, err := h.keys(ctx, c)
	return len(all) > 0, err
}

// keys returns the keys of the holds on the tenant of a chain, and on its threads.
func (h *Holds) keys(ctx context.Context, c Chain) (map[string]bool, error) {
	keys, err := stream.Keys(ctx, h.bucket, c.key()+".>")
	if err != nil {
		return nil, fmt.Errorf("audit: list holds: %w", err)
	}
	all := map[string]bool{}
	for _, key := range keys {
		all[key] = true
	}
	return all, nil
}
