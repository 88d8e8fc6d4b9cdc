package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrGone tells that the record of a cursor was purged with its thread.
var ErrGone = errors.New("stream: the records before the cursor were purged")

// ErrUnfinishedPurge is the ErrGone of a thread whose purge has begun, and has not removed its
// records yet. Either it is under way, or it was interrupted.
var ErrUnfinishedPurge = fmt.Errorf("%w: the purge of the thread has not ended", ErrGone)

// Purge removes the blobs of a thread, lists the thread as purged, destroys its key, and removes its
// records. The records are last, because they name blobs: a caller that is interrupted calls Purge
// again. Until Purge has ended, the entry of the thread in the index has Unfinished. No run of the
// thread may be active.
//
// The log itself keeps no marker of the purge; the entry of the thread in the index is marked as
// purged. Check reports a cursor whose record is gone, and a snapshot in memory is void if the log
// lacks its last record. So the thread may begin again at once.
func (l *Log) Purge(ctx context.Context, t Thread) error {
	last, err := l.beginPurge(ctx, t)
	if err != nil {
		return err
	}
	if last == nil {
		return l.endPurge(ctx, t)
	}
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return asUnavailable(err)
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(l.ThreadSubject(t)+".>")); err != nil {
		return fmt.Errorf("stream: purge thread %q: %w", t.ID, asUnavailable(err))
	}
	return l.endPurge(ctx, t)
}

// beginPurge is Purge without the removal of the records. It returns the last one; nil = there is none.
func (l *Log) beginPurge(ctx context.Context, t Thread) (*Record, error) {
	last, err := l.Last(ctx, l.ThreadSubject(t)+".>")
	if last == nil || err != nil {
		return nil, err
	}
	if err := l.purgeBlobs(ctx, t); err != nil {
		return nil, err
	}
	if err := l.putEntry(ctx, l.ThreadSubject(t), purgedEntry(t, last.Seq, true)); err != nil {
		return nil, err
	}
	if l.cipher != nil {
		if err := l.cipher.Destroy(ctx, l.keyName(l.ThreadSubject(t))); err != nil {
			return nil, fmt.Errorf("stream: destroy the key of thread %q: %w", t.ID, err)
		}
	}
	return last, nil
}

// FinishPurge completes a purge of a thread that was interrupted. It does nothing if the purge has
// ended, and keeps the records of a thread that has begun again.
func (l *Log) FinishPurge(ctx context.Context, t Thread) error {
	hasRecords, err := l.HasUnpurgedRecords(ctx, t)
	if err != nil {
		return err
	}
	if !hasRecords {
		return l.endPurge(ctx, t)
	}
	return l.Purge(ctx, t)
}

// HasUnpurgedRecords reports whether a purge that was interrupted has left records of a thread. It is
// false if the thread has begun again, and if there are no records.
func (l *Log) HasUnpurgedRecords(ctx context.Context, t Thread) (bool, error) {
	current, _, err := l.readEntry(ctx, l.indexKey(l.ThreadSubject(t)))
	if err != nil || !current.Unfinished {
		return false, err
	}
	first, err := l.First(ctx, l.ThreadSubject(t)+".>", 1)
	return first != nil && first.Seq <= current.Seq, err
}

// endPurge lists the end of a purge that has removed the records.
func (l *Log) endPurge(ctx context.Context, t Thread) error {
	current, _, err := l.readEntry(ctx, l.indexKey(l.ThreadSubject(t)))
	if err != nil || !current.Unfinished {
		return err
	}
	return l.putEntry(ctx, l.ThreadSubject(t), purgedEntry(t, current.Seq, false))
}

// purgedEntry returns the entry of a thread that is purged, up to a sequence.
func purgedEntry(t Thread, seq uint64, isUnfinished bool) *IndexEntry {
	entry := &IndexEntry{ThreadID: t.ID, UpdatedAt: time.Now(), Seq: seq, Purged: true, Unfinished: isUnfinished}
	if Token(t.Tenant) != t.Tenant {
		entry.Tenant = t.Tenant
	}
	return entry
}

// purgeBlobs removes the blobs of a thread: those that the index has, also if no record refers to
// them, and those that its records refer to. The latter matter only if the bucket of the index was
// lost.
func (l *Log) purgeBlobs(ctx context.Context, t Thread) error {
	for rec, err := range l.recordsUnder(ctx, l.ThreadSubject(t)+".>") {
		if err != nil {
			return err
		}
		lines, err := rec.storedLines(ctx)
		if errors.Is(err, ErrKeyDestroyed) {
			break // an earlier Purge has destroyed the key, after it had removed the blobs
		}
		if err != nil {
			return err
		}
		for _, line := range lines {
			if !bytes.HasPrefix(line, referencePrefix) {
				continue
			}
			var ref reference
			if err := json.Unmarshal(line, &ref); err != nil {
				return fmt.Errorf("stream: reference: %w", err)
			}
			if err := l.PurgeBlob(ctx, ref.Blob); err != nil {
				return err
			}
		}
	}
	return l.purgeListedBlobs(ctx, t)
}

// purgeListedBlobs removes the blobs of a thread that the index has, each before its key.
func (l *Log) purgeListedBlobs(ctx context.Context, t Thread) error {
	keys, err := Keys(ctx, l.index, l.blobKey(l.ThreadSubject(t), "*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		entry, err := l.index.Get(ctx, key)
		if err == nil {
			if err := l.PurgeBlob(ctx, string(entry.Value())); err != nil {
				return err
			}
			err = l.index.Purge(ctx, key, jetstream.PurgeTTL(markerTTL))
		}
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			return fmt.Errorf("stream: purge blob: %w", asUnavailable(err))
		}
	}
	return nil
}

// PurgeBlob removes a blob; it succeeds if there is none.
func (l *Log) PurgeBlob(ctx context.Context, name string) error {
	err := l.blobs.Delete(ctx, name)
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("stream: purge blob: %w", asUnavailable(err))
	}
	return nil
}

// Missing tells why the log has no record of a thread with a sequence. The error is ErrGone if the
// record was purged. withdrawn is true if it was a proposal that was withdrawn: the thread has lost
// nothing that readers were shown. Both are zero if the log has not reached the sequence.
func (l *Log) Missing(ctx context.Context, t Thread, seq uint64) (withdrawn bool, err error) {
	return l.missing(ctx, l.ThreadSubject(t), seq)
}

// missing is Missing by the subject of the thread. A purge removes the first record of a thread, and
// a withdrawal never does.
func (l *Log) missing(ctx context.Context, thread string, seq uint64) (withdrawn bool, err error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return false, asUnavailable(err)
	}
	if seq > s.CachedInfo().State.LastSeq {
		return false, nil
	}
	first, err := l.First(ctx, thread+".>", 1)
	if err != nil {
		return false, err
	}
	if first == nil || first.Seq > seq {
		return false, ErrGone
	}
	return true, nil
}
