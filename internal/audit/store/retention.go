package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

// expiryInterval is how often entries that are too old are removed.
const expiryInterval = 24 * time.Hour

// Retention removes entries that are older than a time. Several processes may do so concurrently.
// BeginRetention makes it; Stop ends it.
type Retention struct {
	writer *Writer
	holds  *Holds
	keep   time.Duration
	logger *slog.Logger
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// BeginRetention removes entries that are older than keep, now and once a day; 0 = it removes none.
// The caller must call Stop, before it closes the writer.
func BeginRetention(w *Writer, holds *Holds, keep time.Duration, logger *slog.Logger) *Retention {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Retention{writer: w, holds: holds, keep: keep, logger: logger, cancel: cancel}
	if keep > 0 {
		r.ended.Go(func() { r.run(ctx) })
	}
	return r
}

// Stop ends the removal, and waits for it.
func (r *Retention) Stop() {
	r.cancel()
	r.ended.Wait()
}

// run removes entries until ctx ends.
func (r *Retention) run(ctx context.Context) {
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		if err := r.expire(ctx, time.Now().Add(-r.keep)); err != nil && ctx.Err() == nil {
			r.logger.WarnContext(ctx, "old entries of the audit log were not removed; the next attempt is in a day", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// expire removes the entries of all chains that are older than before, except those with a hold.
func (r *Retention) expire(ctx context.Context, before time.Time) error {
	l := r.writer.log
	info, err := l.entries.Info(ctx, jetstream.WithSubjectFilter(l.prefix+".>"))
	if err != nil {
		return fmt.Errorf("audit: list chains: %w: %w", stream.ErrUnavailable, err)
	}
	for subject := range info.State.Subjects {
		c := Platform
		if token, ok := strings.CutPrefix(subject, l.tenants()); ok {
			c = Chain{token}
		}
		held, err := r.holds.any(ctx, c)
		if err == nil && !held {
			err = r.expireChain(ctx, c, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expireChain removes the blocks of a chain whose entries are all older than before. An entry tells
// which ones: the chain continues after it. The last block stays.
func (r *Retention) expireChain(ctx context.Context, c Chain, before time.Time) error {
	l := r.writer.log
	oldest, err := l.from(ctx, c, 1)
	if oldest == nil || err != nil {
		return err
	}
	seq, err := l.start(ctx, c, Filter{Since: before})
	if err != nil || seq <= oldest.seq {
		return err
	}
	kept, err := l.from(ctx, c, seq)
	if kept == nil || err != nil {
		return err
	}
	first, err := audit.Decode(kept.raw[0])
	if err != nil {
		return err
	}
	entry := audit.Entry{Action: audit.ExpireAudit, Outcome: audit.Accepted, Details: map[string]string{
		"through": strconv.FormatUint(first.Number-1, 10), "digest": first.Previous,
	}}
	if err := r.writer.Record(ctx, c, entry); err != nil {
		return err
	}
	if err := l.entries.Purge(ctx, jetstream.WithPurgeSubject(l.subject(c)), jetstream.WithPurgeSequence(kept.seq)); err != nil {
		return fmt.Errorf("audit: remove old entries: %w: %w", stream.ErrUnavailable, err)
	}
	return nil
}
