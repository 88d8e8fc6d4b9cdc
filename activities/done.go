package activities

import (
	"context"
	"fmt"
	"maps"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/stream"
)

// The Done of a finished step is in the record of the move that finished it, and that of a branch
// in the branch's last record. Compensations find them by the sequences in the cursor.

// storeDone stores the Done of a move in its record.
func (w *walker) storeDone(done map[string]pipeline.Done) {
	if w.kept.Done == nil && len(done) > 0 {
		w.kept.Done = map[string]pipeline.Done{}
	}
	maps.Copy(w.kept.Done, done)
}

// keptAs sets the sequence of the record in the cursor, where a move stored something.
func keptAs(records map[string]uint64, seq uint64) {
	for path, record := range records {
		if record == 0 {
			records[path] = seq
		}
	}
}

func (w *walker) recall(ctx context.Context, path string, record uint64) (pipeline.Done, error) {
	k := w.kept
	if record > 0 {
		k = storedAdvance{}
		if err := w.activities.Log.Kept(ctx, w.place.Run.Thread, record, &k); err != nil {
			return pipeline.Done{}, err
		}
	}
	done, there := k.Done[path]
	if !there {
		return done, fmt.Errorf("%w: what step %q has done", stream.ErrLogLost, path)
	}
	return done, nil
}

// branchEnd returns the end of a branch, by its last record; 0 = none.
func (w *walker) branchEnd(ctx context.Context, record uint64) (pipeline.Ended, error) {
	var k storedAdvance
	if record == 0 {
		return k.Ended, nil
	}
	err := w.activities.Log.Kept(ctx, w.place.Run.Thread, record, &k)
	keptAs(k.Ended.Records, record)
	return k.Ended, err
}

// branchesEnded adds the ends of branches that may have to be compensated to an event.
func (w *walker) branchesEnded(ctx context.Context, event *pipeline.Event) error {
	f := w.in.Position.Branches
	if f == nil || !f.Compensates {
		return nil
	}
	var k storedAdvance
	if err := w.activities.Log.Kept(ctx, w.place.Run.Thread, f.Record, &k); err != nil {
		return err
	}
	event.Items, event.Ends = k.Items, f.EndRecords()
	return nil
}
