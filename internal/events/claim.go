package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// claim is the value of the key of a thread and an event: for which wait the thread receives the event.
// It lasts as long as the event.
type claim struct {
	// WaitID, ThreadID, CallID, Number and RunRef are those of the wait.
	WaitID   string `json:"wait"`
	ThreadID string `json:"thread"`
	CallID   string `json:"call"`
	Number   int    `json:"number"`
	RunRef   string `json:"run"`
	// Received tells that the wait has ended with the event. Until then another event or time may end
	// it, and the claim is released.
	Received bool `json:"received,omitempty"`

	key      string
	revision uint64
	// isNew tells that the claim was made just now.
	isNew bool
}

// decision returns the decision of a claim, as the log would have it.
func (c *claim) decision(e *Event) runs.Decision {
	return runs.Decision{CallID: c.CallID, Kind: runs.DecisionAnswer, Question: c.Number, Digest: runs.ShortDigest(e.decisionDigest(c.CallID))}
}

// wait returns the wait of a claim, with what a decision about it needs.
func (c *claim) wait(tenant string) *Wait {
	return &Wait{ID: c.WaitID, Tenant: tenant, ThreadID: c.ThreadID, CallID: c.CallID, Number: c.Number, RunRef: c.RunRef}
}

// claimKey returns the key: claim.<tenant>.<thread>.<event>.
func claimKey(t stream.Thread, e *Event) string { return threadKey(claimPrefix, t) + "." + e.Digest() }

// claimPause is the time after which a lagging replica is asked again.
const claimPause = 20 * time.Millisecond

// claim claims an event for a wait, or returns the claim that its thread has.
func (s *Store) claim(ctx context.Context, w *Wait, e *Event) (*claim, error) {
	c := &claim{WaitID: w.ID, ThreadID: w.ThreadID, CallID: w.CallID, Number: w.Number, RunRef: w.RunRef, key: claimKey(w.thread(), e), isNew: true}
	value, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("events: encode claim: %w", err)
	}
	for {
		c.revision, err = s.waits.Create(ctx, c.key, value, jetstream.KeyTTL(Retention))
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return c, unavailable(err)
		}
		entry, err := s.waits.Get(ctx, c.key)
		if errors.Is(err, jetstream.ErrKeyNotFound) { // released meanwhile, or the replica lags
			if err := durations.Sleep(ctx, claimPause); err != nil {
				return nil, unavailable(err)
			}
			continue
		}
		if err != nil {
			return nil, unavailable(err)
		}
		return decodeClaim(entry)
	}
}

// decodeClaim decodes the entry of a claim.
func decodeClaim(entry jetstream.KeyValueEntry) (*claim, error) {
	c := &claim{key: entry.Key(), revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), c); err != nil {
		return nil, fmt.Errorf("events: decode claim: %w", err)
	}
	return c, nil
}

// confirm notes that the wait of a claim has ended with the event. It does nothing if the claim has
// changed: then another attempt has confirmed it.
func (s *Store) confirm(ctx context.Context, c *claim) error {
	if c.Received {
		return nil
	}
	c.Received = true
	value, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("events: encode claim: %w", err)
	}
	m := &nats.Msg{Subject: "$KV." + s.waits.Bucket() + "." + c.key, Data: value}
	_, err = s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(c.revision), jetstream.WithMsgTTL(Retention))
	if stream.IsConflict(err) {
		return nil
	}
	return unavailable(err)
}

// release removes a claim, unless it has changed.
func (s *Store) release(ctx context.Context, c *claim) error {
	err := s.waits.Purge(ctx, c.key, jetstream.PurgeTTL(markerTTL), jetstream.LastRevision(c.revision))
	if stream.IsConflict(err) {
		return nil
	}
	return unavailable(err)
}

// claimsOf returns the claims of all threads on an event that are not confirmed.
func (s *Store) claimsOf(ctx context.Context, e *Event) (open []*claim, err error) {
	keys, err := stream.Keys(ctx, s.waits, claimPrefix+stream.KeyToken(e.Tenant)+".*."+e.Digest())
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		entry, err := s.waits.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, unavailable(err)
		}
		c, err := decodeClaim(entry)
		if err != nil {
			return nil, err
		}
		if !c.Received {
			open = append(open, c)
		}
	}
	return open, nil
}
