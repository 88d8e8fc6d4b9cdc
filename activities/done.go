package activities

import (
	"context"
	"fmt"
	"maps"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/stream"
)

// Compensations need the outputs that a finished step had, long after the state has changed. The
// record of the advance that finished a step keeps them as pipeline.Done; the last record of a
// branch keeps those of its steps. The cursor, which the workflow carries, has only the sequences
// of these records.

// storeDone adds the Done values of a move to the record of this advance.
func (a *advancer) storeDone(done map[string]pipeline.Done) {
	if a.stored.Done == nil && len(done) > 0 {
		a.stored.Done = map[string]pipeline.Done{}
	}
	maps.Copy(a.stored.Done, done)
}

// keptAs sets the sequence of this advance's record in a cursor, where a move has stored something
// (0).
func keptAs(records map[string]uint64, seq uint64) {
	for path, record := range records {
		if record == 0 {
			records[path] = seq
		}
	}
}

// recall returns the Done of a step, from the record that keeps it; 0 = this advance has stored it
// in the same walk. The error is stream.ErrLogLost if it is missing. Expressions of compensations
// call it.
func (a *advancer) recall(ctx context.Context, path string, record uint64) (pipeline.Done, error) {
	k := a.stored
	if record > 0 {
		k = storedAdvance{}
		if err := a.activities.Log.Kept(ctx, a.place.Run.Thread, record, &k); err != nil {
			return pipeline.Done{}, err
		}
	}
	done, there := k.Done[path]
	if !there {
		return done, fmt.Errorf("%w: the result of step %q", stream.ErrLogLost, path)
	}
	return done, nil
}

// branchEnd returns the end of a branch from its last record: which of its steps have
// compensations. Record 0 is a branch without any.
func (a *advancer) branchEnd(ctx context.Context, record uint64) (pipeline.Ended, error) {
	var k storedAdvance
	if record == 0 {
		return k.Ended, nil
	}
	err := a.activities.Log.Kept(ctx, a.place.Run.Thread, record, &k)
	keptAs(k.Ended.Records, record)
	return k.Ended, err
}

// branchesEnded adds the items of a map and the ends of branches to an event, if the branches have
// compensations. Only records have them, because they are too large for a workflow.
func (a *advancer) branchesEnded(ctx context.Context, event *pipeline.Event) error {
	f := a.in.Position.Branches
	if f == nil || !f.Compensates {
		return nil
	}
	var k storedAdvance
	if err := a.activities.Log.Kept(ctx, a.place.Run.Thread, f.Record, &k); err != nil {
		return err
	}
	var err error
	event.Items = k.Items
	event.Ends, err = f.EndRecords()
	return err
}
