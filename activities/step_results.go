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

// storeDone adds the Done values of Advance to the record of this advance.
func (adv *advancer) storeDone(done map[string]pipeline.Done) {
	if adv.stored.Done == nil && len(done) > 0 {
		adv.stored.Done = map[string]pipeline.Done{}
	}
	maps.Copy(adv.stored.Done, done)
}

// setRecords sets the sequence of this advance's record in a cursor, where Advance has stored
// something (0).
func setRecords(records map[string]uint64, seq uint64) {
	for path, record := range records {
		if record == 0 {
			records[path] = seq
		}
	}
}

// readDone returns the Done of a step, from the record that keeps it; 0 = this advance has stored
// it in the same pass. The error is stream.ErrLogLost if it is missing. Expressions of
// compensations call it.
func (adv *advancer) readDone(ctx context.Context, path string, record uint64) (pipeline.Done, error) {
	stored := adv.stored
	if record > 0 {
		stored = storedAdvance{}
		if err := adv.activities.Log.Kept(ctx, adv.place.Run.Thread, record, &stored); err != nil {
			return pipeline.Done{}, err
		}
	}
	done, ok := stored.Done[path]
	if !ok {
		return done, fmt.Errorf("%w: the result of step %q", stream.ErrLogLost, path)
	}
	return done, nil
}

// readBranchEnd returns the end of a branch from its last record: which of its steps have
// compensations. Record 0 is a branch without any.
func (adv *advancer) readBranchEnd(ctx context.Context, record uint64) (pipeline.Ended, error) {
	var stored storedAdvance
	if record == 0 {
		return stored.Ended, nil
	}
	err := adv.activities.Log.Kept(ctx, adv.place.Run.Thread, record, &stored)
	setRecords(stored.Ended.Records, record)
	return stored.Ended, err
}

// addBranchEnds adds the items of a map and the ends of branches to an event, if the branches have
// compensations. Only records have them, because they are too large for a workflow.
func (adv *advancer) addBranchEnds(ctx context.Context, event *pipeline.Event) error {
	branches := adv.in.Position.Branches
	if branches == nil || !branches.Compensates {
		return nil
	}
	var stored storedAdvance
	if err := adv.activities.Log.Kept(ctx, adv.place.Run.Thread, branches.Record, &stored); err != nil {
		return err
	}
	var err error
	event.Items = stored.Items
	event.Ends, err = branches.EndRecords()
	return err
}
