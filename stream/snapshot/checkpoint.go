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

// A checkpoint is a reduction beside the log, so that opening a thread costs what came since and not
// its whole past. A thread has two places for them. The newest stands in one, and in the other the
// newest from before the latest run: readers of that run are shown the thread as it was when the run
// began, too. What is older than both is reduced from the thread's beginning.

// Bounds on what lies behind the last checkpoint (log.md, reduction).
const (
	checkpointWithin = 1 << 20
	checkpointAtEnd  = 64 << 10
)

// checkpointSeq is where the description of a checkpoint holds the last record that it has, and
// checkpointVersion what a reduction had when it was made: one that lacks what they have now is of no use.
const (
	checkpointSeq     = "seq"
	checkpointVersion = "version"
	currentCheckpoint = "3"
)

// checkpoint is one of a thread's places for them, and what it holds by now; 0 = nothing.
type checkpoint struct {
	name string
	seq  uint64
}

// checkpointNames are those of a thread's places.
func (s *Store) checkpointNames(t stream.Thread) []string {
	name := "checkpoint." + s.log.ThreadSubject(t)
	return []string{name, name + ".other"}
}

// checkpoints returns a thread's places, the newest first. The first place is used first: where it is
// empty, so is the second.
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

// loadCheckpoint returns the newest checkpoint that is not newer than a record, and nil if there is
// none, or none that can be read (it may be replaced at this moment): it only saves reading the log.
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
		if json.Unmarshal(data, &r) == nil && r.Seq <= seq {
			return &r
		}
	}
	return nil
}

// Checkpoint stores a reduction if enough lies behind the last one. atEnd lowers the bound: a run has
// ended.
func (s *Store) Checkpoint(ctx context.Context, t stream.Thread, r *Snapshot, atEnd bool) error {
	if r.behind < checkpointAtEnd || !atEnd && r.behind < checkpointWithin {
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
	stored.behind = 0
	s.cache.keep(t, &stored)
	return nil
}

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
