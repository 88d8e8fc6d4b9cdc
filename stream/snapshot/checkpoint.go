package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// A checkpoint is a snapshot in the log's object store, so that opening a thread costs only the
// records since then. A thread has two places for checkpoints: one has the newest, the other the
// newest from before the latest run, because readers of that run need the thread at the run's
// beginning. An older snapshot is computed from the thread's first record.
//
// Checkpoints are a cache: a reader that finds none, or one of another format, folds the records.
// Several processes may store one concurrently; the last write wins, and any of them is correct.

// A checkpoint is stored if more than so many bytes of records follow the last one:
// checkpointWithin during a run, checkpointAtEnd at its end.
const (
	checkpointWithin = 1 << 20
	checkpointAtEnd  = 64 << 10
)

// checkpointSeq and checkpointVersion are keys of a checkpoint's metadata: the sequence of its last
// record, and the version of its format. A checkpoint of another version is not used.
const (
	checkpointSeq     = "seq"
	checkpointVersion = "version"
	currentCheckpoint = "4"
)

// checkpoint is one of the two places of a thread, and the sequence of the snapshot that it has; 0
// = none.
type checkpoint struct {
	name string
	seq  uint64
}

// checkpointNames returns the names of a thread's two places.
func (s *Store) checkpointNames(t stream.Thread) []string {
	name := "checkpoint." + s.log.ThreadSubject(t)
	return []string{name, name + ".other"}
}

// checkpoints returns the two places of a thread, the newest checkpoint first. It reads their
// metadata only. If the first place is empty, so is the second. A checkpoint of another version
// counts as sequence 0.
func (s *Store) checkpoints(ctx context.Context, t stream.Thread) ([]checkpoint, error) {
	var places []checkpoint
	for _, name := range s.checkpointNames(t) {
		places = append(places, checkpoint{name: name})
	}
	for i := range places {
		info, err := s.log.Blobs().GetInfo(ctx, places[i].name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot: checkpoints of thread %q: %w", t.ID, err)
		}
		if info.Metadata[checkpointVersion] == currentCheckpoint {
			places[i].seq, _ = strconv.ParseUint(info.Metadata[checkpointSeq], 10, 64) // 0 = to be overwritten
		}
	}
	if places[1].seq > places[0].seq {
		slices.Reverse(places)
	}
	return places, nil
}

// loadCheckpoint returns the newest checkpoint that is not newer than seq; nil = there is none, or
// none that can be read. It reports no error, because the caller then reads the records.
func (s *Store) loadCheckpoint(ctx context.Context, t stream.Thread, seq uint64) *Snapshot {
	places, err := s.checkpoints(ctx, t)
	if err != nil {
		return nil
	}
	for _, c := range places {
		if c.seq == 0 || c.seq > seq {
			continue
		}
		data, err := s.log.Blobs().GetBytes(ctx, c.name)
		if err != nil {
			continue
		}
		var r Snapshot
		if json.Unmarshal(data, &r) == nil && r.Seq <= seq { // it may have been overwritten since
			return &r
		}
	}
	return nil
}

// Checkpoint stores a snapshot if enough bytes of records follow the last checkpoint; atEnd tells
// that a run has ended with it. It replaces the newest checkpoint if that is of the same run, else
// the older one. It stores nothing if a newer one exists. Activities call it with snapshots that
// they have computed for their work; a failure costs time only.
func (s *Store) Checkpoint(ctx context.Context, t stream.Thread, r *Snapshot, atEnd bool) error {
	if r.sinceCheckpoint < checkpointAtEnd || !atEnd && r.sinceCheckpoint < checkpointWithin {
		return nil
	}
	places, err := s.checkpoints(ctx, t)
	if err != nil {
		return err
	}
	newest, over := places[0], places[0]
	if newest.seq < r.Opened && newest.seq > 0 {
		over = places[1]
	}
	if newest.seq < r.Seq {
		if err := s.storeCheckpoint(ctx, over.name, r); err != nil {
			return fmt.Errorf("snapshot: checkpoint of thread %q: %w", t.ID, err)
		}
	}
	stored := *r
	stored.sinceCheckpoint = 0
	s.cache.keep(t, &stored)
	return nil
}

// storeCheckpoint writes a snapshot to a place, and replaces the one that is there.
func (s *Store) storeCheckpoint(ctx context.Context, name string, r *Snapshot) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.log.Blobs().Put(ctx, jetstream.ObjectMeta{
		Name: name, Metadata: map[string]string{checkpointSeq: strconv.FormatUint(r.Seq, 10), checkpointVersion: currentCheckpoint},
	}, bytes.NewReader(data))
	return err
}

// purgeCheckpoints removes the checkpoints of a thread.
func (s *Store) purgeCheckpoints(ctx context.Context, t stream.Thread) error {
	for _, name := range s.checkpointNames(t) {
		if err := s.log.PurgeBlob(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
