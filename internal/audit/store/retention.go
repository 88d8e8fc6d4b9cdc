package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

// Keep returns how long the entries of a chain are kept, and the rule that says so; 0 = for ever.
type Keep func(Chain) (ttl time.Duration, rule string)

// Expire removes the entries of all chains that are too old at a time, except those of a tenant with
// a legal hold. It returns how many these are. Several processes may call it concurrently. Errors:
// stream.ErrUnavailable, the cause of ctx.
func Expire(ctx context.Context, w *Writer, holds *Holds, keep Keep, now time.Time) (removed uint64, err error) {
	l := w.log
	info, err := l.entries.Info(ctx, jetstream.WithSubjectFilter(l.prefix+".>"))
	if err != nil {
		return 0, fmt.Errorf("audit: list chains: %w: %w", stream.ErrUnavailable, err)
	}
	for subject := range info.State.Subjects {
		c := Platform
		if token, ok := strings.CutPrefix(subject, l.tenants()); ok {
			c = Chain{token}
		}
		ttl, rule := keep(c)
		if ttl == 0 {
			continue
		}
		held, err := holds.any(ctx, c)
		if err != nil {
			return removed, err
		}
		if held {
			continue
		}
		n, err := w.expireChain(ctx, c, now.Add(-ttl), rule)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// expireChain removes the blocks of a chain whose entries are all older than before, and returns the
// number of entries. An entry tells which ones: the chain continues after it. The last block stays.
func (w *Writer) expireChain(ctx context.Context, c Chain, before time.Time, rule string) (uint64, error) {
	l := w.log
	oldest, err := l.from(ctx, c, 1)
	if oldest == nil || err != nil {
		return 0, err
	}
	seq, err := l.start(ctx, c, Filter{Since: before})
	if err != nil || seq <= oldest.seq {
		return 0, err
	}
	kept, err := l.from(ctx, c, seq)
	if kept == nil || err != nil {
		return 0, err
	}
	from, err := audit.Decode(oldest.raw[0])
	if err != nil {
		return 0, err
	}
	first, err := audit.Decode(kept.raw[0])
	if err != nil {
		return 0, err
	}
	entry := audit.Entry{Action: audit.ExpireAudit, Outcome: audit.Accepted, Details: map[string]string{
		"through": strconv.FormatUint(first.Number-1, 10), "digest": first.Previous, "rule": rule,
	}}
	if err := w.Record(ctx, c, entry); err != nil {
		return 0, err
	}
	if err := l.entries.Purge(ctx, jetstream.WithPurgeSubject(l.subject(c)), jetstream.WithPurgeSequence(kept.seq)); err != nil {
		return 0, fmt.Errorf("audit: remove old entries: %w: %w", stream.ErrUnavailable, err)
	}
	return first.Number - from.Number, nil
}
