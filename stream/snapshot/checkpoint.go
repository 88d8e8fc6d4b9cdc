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
// records since then. A thread has two slots for checkpoints: one has the newest, the other the
// newest from before the latest run, because readers of that run need the thread at the run's
// beginning. An older snapshot is computed from the thread's first record.
//
// Checkpoints are a cache: a reader that finds none, or one of another format, folds the records.
// Several processes may store one concurrently; the last write wins, and any of them is correct.

// A checkpoint is stored if at least so many bytes of records follow the last one:
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
	currentCheckpoint = "9"
)

// checkpointSlot is one of the two slots of a thread, and the sequence of the snapshot that it has;
// 0 = none.
type checkpointSlot struct {
	name string
	seq  uint64
}

// checkpointNames returns the names of a thread's two slots.
func (s *Store) checkpointNames(t stream.Thread) []string {
	name := "checkpoint." + s.log.ThreadSubject(t)
	return []string{name, name + ".other"}
}

// checkpointSlots returns the two slots of a thread, the newest checkpoint first. It reads their
// metadata only. If the first slot is empty, so is the second. A checkpoint of another version
// counts as sequence 0.
func (s *Store) checkpointSlots(ctx context.Context, t stream.Thread) ([]checkpointSlot, error) {
	var slots []checkpointSlot
	for _, name := range s.checkpointNames(t) {
		slots = append(slots, checkpointSlot{name: name})
	}
	for i := range slots {
		info, err := s.log.Blobs().GetInfo(ctx, slots[i].name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot: checkpoints of thread %q: %w", t.ID, err)
		}
		if info.Metadata[checkpointVersion] == currentCheckpoint {
			slots[i].seq, _ = strconv.ParseUint(info.Metadata[checkpointSeq], 10, 64) // 0 = to be overwritten
		}
	}
	if slots[1].seq > slots[0].seq {
		slices.Reverse(slots)
	}
	return slots, nil
}

// loadCheckpoint returns the newest checkpoint that is not newer than seq; nil = there is none, or
// none that can be read. It reports no error, because the caller then reads the records.
func (s *Store) loadCheckpoint(ctx context.Context, t stream.Thread, seq uint64) *Snapshot {
	slots, err := s.checkpointSlots(ctx, t)
	if err != nil {
		return nil
	}
	for _, c := range slots {
		if c.seq == 0 || c.seq > seq {
			continue
		}
		stored, err := s.log.Blobs().GetBytes(ctx, c.name)
		if err != nil {
			continue
		}
		data, err := s.log.DecryptObject(ctx, t, c.name, stored)
		if err != nil {
			continue
		}
		var snap Snapshot
		if json.Unmarshal(data, &snap) == nil && snap.Seq <= seq { // it may have been overwritten since
			return &snap
		}
	}
	return nil
}

// Checkpoint stores a snapshot of an active run if at least checkpointWithin bytes of records
// follow the last checkpoint. It replaces the newest checkpoint if that is of the same run, else
// the older one. It stores nothing if a newer one exists. Activities call it with snapshots that
// they have computed for their work; a failure costs time only.
func (s *Store) Checkpoint(ctx context.Context, t stream.Thread, snap *Snapshot) error {
	return s.checkpoint(ctx, t, snap, checkpointWithin)
}

// FinalCheckpoint is Checkpoint for a snapshot with which a run has ended: checkpointAtEnd
// bytes of records are enough.
func (s *Store) FinalCheckpoint(ctx context.Context, t stream.Thread, snap *Snapshot) error {
	return s.checkpoint(ctx, t, snap, checkpointAtEnd)
}

// checkpoint is Checkpoint for a minimum of bytes since the last checkpoint.
func (s *Store) checkpoint(ctx context.Context, t stream.Thread, snap *Snapshot, minBytes int) error {
	if snap.sinceCheckpoint < minBytes {
		return nil
	}
	slots, err := s.checkpointSlots(ctx, t)
	if err != nil {
		return err
	}
	newest, target := slots[0], slots[0]
	if newest.seq < snap.Opened && newest.seq > 0 {
		target = slots[1]
	}
	if newest.seq < snap.Seq {
		if err := s.storeCheckpoint(ctx, t, target.name, snap); err != nil {
			return fmt.Errorf("snapshot: checkpoint of thread %q: %w", t.ID, err)
		}
	}
	stored := *snap
	stored.sinceCheckpoint = 0
	s.cache.put(t, &stored)
	return nil
}

// storeCheckpoint writes a snapshot to a slot, and replaces the one that is there.
func (s *Store) storeCheckpoint(ctx context.Context, t stream.Thread, name string, snap *Snapshot) error {
	data, err := json.Marshal(snap)
	if err != nil {
		return err
	}
	if data, err = s.log.EncryptObject(ctx, t, name, data); err != nil {
		return err
	}
	_, err = s.log.Blobs().Put(ctx, jetstream.ObjectMeta{
		Name: name, Metadata: map[string]string{checkpointSeq: strconv.FormatUint(snap.Seq, 10), checkpointVersion: currentCheckpoint},
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
