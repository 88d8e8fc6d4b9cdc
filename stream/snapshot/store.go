package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/stream"
)

// Store computes snapshots of the threads of a log. It keeps those of the threads used last in
// memory (cache.go), and stores checkpoints in the log's object store (checkpoint.go). The API,
// workers and readers of a process share one. It is safe for concurrent use, owns no goroutine and
// needs no Close.
type Store struct {
	log   *stream.Log
	cache *cache
}

// NewStore returns a store for a log. Components of a process that share a store share its memory;
// two stores of one process are correct, but hold the same snapshots twice.
func NewStore(log *stream.Log) *Store {
	return &Store{log: log, cache: newCache(cacheThreads, cacheBytes)}
}

// Log returns the log that the snapshots are of.
func (s *Store) Log() *stream.Log { return s.log }

// Purge removes a thread: its checkpoints, its snapshots in this process, and all its records and
// blobs (see stream.Log.Purge). A caller that is interrupted purges again. No run of the thread may
// be active: its workflow would miss its records. Other processes find out by compute that their
// snapshots are of a purged thread.
func (s *Store) Purge(ctx context.Context, t stream.Thread) error {
	if err := s.purgeCheckpoints(ctx, t); err != nil {
		return err
	}
	s.cache.remove(t)
	return s.log.Purge(ctx, t)
}

// awaitInterval is how long Await waits for a record before it computes the snapshot again.
const awaitInterval = time.Hour

// Await computes the latest snapshot of a thread, and again after each record, until isMet returns
// true for it. It fails with stream.ErrInterrupted when the follower stops, and with the cause of
// ctx.
func (s *Store) Await(ctx context.Context, f *stream.Follower, thread stream.Thread, isMet func(*Snapshot) bool) error {
	tail := f.ThreadTail(thread)
	defer tail.Close()
	for {
		snap, err := s.Latest(ctx, thread, 0)
		if err != nil || isMet(snap) {
			return err
		}
		if _, err := tail.Next(ctx, awaitInterval); err != nil {
			return err
		}
	}
}

// AtCursor returns the snapshot at a sequence from a client. It checks that the record exists and
// belongs to the thread: the error is stream.ErrGone if the record was purged, and
// stream.ErrInvalidCursor if it is of another thread.
func (s *Store) AtCursor(ctx context.Context, t stream.Thread, seq uint64) (*Snapshot, error) {
	rec, err := s.log.At(ctx, max(seq, 1))
	var withdrawn bool
	if err == nil && rec == nil {
		withdrawn, err = s.log.Missing(ctx, t, seq)
	}
	if err != nil {
		return nil, err
	}
	if !withdrawn && (rec == nil || !rec.OfThread(t)) {
		return nil, fmt.Errorf("%w: the cursor belongs to another thread", stream.ErrInvalidCursor)
	}
	return s.At(ctx, t, seq)
}

// Latest returns the snapshot of a thread at its last record, which the leader names. after is a
// record that the caller knows: the error is stream.ErrLogLost if the thread ends before it. 0 =
// none.
func (s *Store) Latest(ctx context.Context, t stream.Thread, after uint64) (*Snapshot, error) {
	last, err := s.log.LastOf(ctx, t)
	if err != nil {
		return nil, err
	}
	if last < after {
		return nil, fmt.Errorf("%w: thread %q ends at %d, not at %d", stream.ErrLogLost, t.ID, last, after)
	}
	return s.At(ctx, t, last)
}

// At returns the snapshot of a thread at the sequence of one of its records. Concurrent callers
// with the same sequence share the work. At reads the records since the last snapshot or checkpoint
// before it: few if the record is of the latest run, all of the thread if it is an old one. At
// sequence 0 a thread is empty.
func (s *Store) At(ctx context.Context, t stream.Thread, seq uint64) (*Snapshot, error) {
	if seq == 0 {
		return &Snapshot{State: EmptyState}, nil
	}
	return s.cache.getOrCompute(ctx, snapshotKey{t, seq}, func() (*Snapshot, error) { return s.compute(ctx, t, seq) })
}

// compute folds the records after the newest usable base. If the base turns out to be of a purged
// thread with the same ID, it folds all records.
func (s *Store) compute(ctx context.Context, t stream.Thread, seq uint64) (*Snapshot, error) {
	snap, err := s.foldFrom(ctx, t, s.findBase(ctx, t, seq), seq)
	if errors.Is(err, errBasePurged) {
		s.cache.remove(t)
		return s.foldFrom(ctx, t, &Snapshot{State: EmptyState}, seq)
	}
	return snap, err
}

// errBasePurged tells that the thread was purged after the base was computed, and has begun again.
var errBasePurged = errors.New("snapshot: the thread was purged")

// foldFrom adds the records of a thread up to seq to a base. It reads the last record of the base
// again: a purge removes all records, so a base without its last record is of another conversation
// (errBasePurged), unless that record was a proposal that was withdrawn.
func (s *Store) foldFrom(ctx context.Context, t stream.Thread, base *Snapshot, seq uint64) (*Snapshot, error) {
	f, reachedBase := newFolder(s.log, t, base), base.Seq == 0
	for r, err := range s.log.Records(ctx, s.log.ThreadSubject(t)+".>", max(base.Seq, 1), seq) {
		switch {
		case err != nil:
			return nil, err
		case !reachedBase && r.Seq == base.Seq:
			reachedBase = true
			continue
		case !reachedBase:
			if reachedBase, err = s.log.Missing(ctx, t, base.Seq); errors.Is(err, stream.ErrGone) {
				return nil, errBasePurged
			} else if err != nil {
				return nil, err
			}
		}
		if err := f.add(ctx, r); err != nil {
			return nil, err
		}
	}
	return f.snapshot(seq), nil
}

// findBase returns the newest snapshot, in memory or stored, that is not newer than seq. Without
// one it returns an empty thread.
func (s *Store) findBase(ctx context.Context, t stream.Thread, seq uint64) *Snapshot {
	if snap := s.cache.newestUpTo(t, seq); snap != nil {
		return snap
	}
	if snap := s.loadCheckpoint(ctx, t, seq); snap != nil {
		return snap
	}
	return &Snapshot{State: EmptyState}
}

// Fold adds records of the thread t to a snapshot, in the order of the log. It neither reads nor
// fills a cache.
func Fold(ctx context.Context, log *stream.Log, t stream.Thread, base *Snapshot, records ...*stream.Record) (*Snapshot, error) {
	f, seq := newFolder(log, t, base), base.Seq
	for _, rec := range records {
		if err := f.add(ctx, rec); err != nil {
			return nil, err
		}
		seq = rec.Seq
	}
	return f.snapshot(seq), nil
}
