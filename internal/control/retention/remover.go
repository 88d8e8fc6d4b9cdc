package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/stream"
)

const (
	// maxInterval and minInterval bound the time between two rounds. It is a tenth of the shortest
	// time to live, and up to a fifth longer, so that processes do not work at the same times.
	maxInterval = 10 * time.Minute
	minInterval = time.Second
	// continueInterval is the time to the next round if a round has reached maxRemoved.
	continueInterval = 10 * time.Second
	// maxRemoved bounds the threads that one round removes, and roundTime its time.
	maxRemoved = 500
	roundTime  = time.Minute
	// leaseTime is how long the lease of a process lasts that has died. It exceeds roundTime, so no
	// round outlasts its lease.
	leaseTime = roundTime + 30*time.Second
	// pageSize is how many threads a round reads at a time.
	pageSize = 1000
	// maxFailures bounds the threads that a round fails to remove: then it ends.
	maxFailures = 10
)

// leaseKey is the key of the lease in the bucket of the index of threads.
const leaseKey = "retention"

// Threads deletes threads. *deletion.Threads implements it.
type Threads interface {
	// Expire deletes a thread that is settled since before a time, after it has called record. It
	// returns false if the thread is not settled, has a later record, or has a legal hold.
	Expire(ctx context.Context, t stream.Thread, before time.Time, record func() error) (bool, error)
	// Finish continues a deletion that was interrupted.
	Finish(ctx context.Context, t stream.Thread) error
}

// Config configures a Remover. All fields but Files and FileIndex are required. The caller owns them, and closes them after
// Stop.
type Config struct {
	Rules  *Rules
	Log    *stream.Log
	Index  *threads.Index
	Delete Threads
	Holds  *store.Holds
	Writer *store.Writer
	Logger *slog.Logger
	// Files are the files of tenants, with their index. nil = there are none.
	Files     *files.Store
	FileIndex *files.Index
}

// Remover removes what is older than its time to live. Begin makes it and starts its goroutine; Stop
// ends it.
type Remover struct {
	Config

	swept  time.Time // when the files were swept last; only Round uses it
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// New returns a Remover without a goroutine, for calls of Round.
func New(cfg Config) *Remover { return &Remover{Config: cfg} }

// Begin starts a Remover. Its first round begins soon. The caller must call Stop.
func Begin(cfg Config) *Remover {
	ctx, cancel := context.WithCancel(context.Background())
	r := New(cfg)
	r.cancel = cancel
	r.ended.Go(func() { r.run(ctx) })
	return r
}

// Stop ends the removal, and waits for it. A deletion that is interrupted is completed by a later
// round.
func (r *Remover) Stop() {
	r.cancel()
	r.ended.Wait()
}

// run removes at intervals until ctx ends.
func (r *Remover) run(ctx context.Context) {
	pause := rand.N(minInterval) //nolint:gosec // jitter needs no unpredictable numbers
	for {
		select {
		case <-time.After(pause):
		case <-r.Rules.changes(): // the pause was that of the rules before
		case <-ctx.Done():
			return
		}
		removed, err := r.Round(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "not everything that is older than its time to live was removed; a later round tries again", "error", err)
		}
		pause = r.interval()
		if removed == maxRemoved {
			pause = continueInterval
		}
		pause += rand.N(pause/5 + 1) //nolint:gosec // jitter needs no unpredictable numbers
	}
}

// interval returns the time between two rounds.
func (r *Remover) interval() time.Duration {
	shortest := r.Rules.shortestOfAll()
	if shortest == 0 {
		return maxInterval
	}
	return min(max(shortest/10, minInterval), maxInterval)
}

// Round removes what is too old at a time, unless another process does: at most maxRemoved threads,
// whose number it returns. First it completes deletions that were interrupted; last, every maxInterval, it sweeps
// the files.
func (r *Remover) Round(ctx context.Context, now time.Time) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	lease, err := r.Log.Index().Create(ctx, leaseKey, nil, jetstream.KeyTTL(leaseTime))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("retention: lease: %w: %w", stream.ErrUnavailable, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime-roundTime)
		defer cancel()
		_ = r.Log.Index().Delete(ctx, leaseKey, jetstream.LastRevision(lease)) // else it expires
	}()
	// What fails for one thread or tenant must not keep the others.
	var failures []error
	for _, t := range r.Index.Unfinished() {
		if err := r.Delete.Finish(ctx, t); err != nil {
			failures = append(failures, fmt.Errorf("retention: complete the deletion of thread %q: %w", t.ID, err))
		}
	}
	for _, tenant := range r.Index.Tenants() {
		n, err := r.expireThreads(ctx, tenant, now, maxRemoved-removed)
		removed += n
		if err != nil {
			failures = append(failures, err)
		}
	}
	keep := r.Rules.Audit()
	entries, err := store.Expire(ctx, r.Writer, r.Holds, func(c store.Chain) (time.Duration, string) {
		rule := keep(c)
		return rule.TTL, rule.String()
	}, now)
	telemetry.Expired(ctx, keyAudit, int64(entries)) //nolint:gosec // a number of entries
	failures = append(failures, err)
	if r.Files != nil && now.Sub(r.swept) >= maxInterval { // last, because the files may need the rest of the round
		r.swept = now
		failures = append(failures, r.Files.Sweep(ctx, r.FileIndex, now, r.Log.HasThread))
	}
	return removed, errors.Join(failures...)
}

// expireThreads removes the threads of a tenant that are too old, at most limit. One that cannot be
// removed is left to the next round.
func (r *Remover) expireThreads(ctx context.Context, tenant string, now time.Time, limit int) (removed int, err error) {
	shortest := r.Rules.shortest(tenant)
	if shortest == 0 || limit == 0 {
		return 0, nil
	}
	var isHeld func(thread string) bool
	var failures []error
	for cursor := ""; ; {
		page, next, err := r.Index.Oldest(tenant, cursor, pageSize)
		if err != nil {
			return removed, err
		}
		for _, t := range page {
			if now.Sub(t.UpdatedAt) <= shortest {
				return removed, errors.Join(failures...) // all that follow are younger
			}
			rule := r.Rules.Threads(tenant, t.Agent)
			if rule.TTL == 0 || now.Sub(t.UpdatedAt) <= rule.TTL || !t.Status.IsSettled() {
				continue
			}
			if isHeld == nil {
				if isHeld, err = r.Holds.Held(ctx, tenant); err != nil {
					return removed, err
				}
			}
			if isHeld(t.ThreadID) {
				continue
			}
			isRemoved, err := r.expireThread(ctx, tenant, t, rule, now)
			if err != nil {
				failures = append(failures, err)
			}
			if isRemoved {
				removed++
			}
			if removed == limit || len(failures) == maxFailures || ctx.Err() != nil {
				return removed, errors.Join(failures...)
			}
		}
		if cursor = next; cursor == "" {
			return removed, errors.Join(failures...)
		}
	}
}

// expireThread removes a thread, and records it in the audit log of the tenant before that.
func (r *Remover) expireThread(ctx context.Context, tenant string, t threads.Thread, rule Rule, now time.Time) (bool, error) {
	entry := audit.Entry{
		Action: audit.ExpireThread, Outcome: audit.Accepted, Target: audit.Target{Thread: t.ThreadID, Agent: t.Agent},
		Details: map[string]string{"rule": audit.Cut(rule.String()), "updatedAt": t.UpdatedAt.Format(time.RFC3339)},
	}
	record := func() error { return r.Writer.Record(ctx, store.OfTenant(tenant), entry) }
	isRemoved, err := r.Delete.Expire(ctx, stream.Thread{Tenant: tenant, ID: t.ThreadID}, now.Add(-rule.TTL), record)
	if err != nil {
		return false, fmt.Errorf("retention: thread %q: %w", t.ThreadID, err)
	}
	if isRemoved {
		telemetry.Expired(ctx, keyThreads, 1)
	}
	return isRemoved, nil
}
