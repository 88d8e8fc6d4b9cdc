package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file writes what a pass of Advance has found as a done record, and reads the answer back
// from it.

// failures returns all failures in the answer: those in the cursor, and the one that the pipeline
// ends with. They are pointers into the answer.
func (adv *advancer) failures() []*pipeline.Failure {
	all := adv.next.TreePosition.Failures()
	if adv.next.Failed != nil {
		all = append(all, adv.next.Failed)
	}
	return all
}

// finish writes the done record and returns the answer. The error is stream.ErrStale, and nothing
// is written, if the state has changed since adv.thread was read. Only branches and subagents need
// that check: the run's own agent has no concurrent writer of the state while it advances.
func (adv *advancer) finish(ctx context.Context, attempt *stream.Attempt) (runs.AdvanceResult, error) {
	// This advance made the detail. The record keeps it, and withSequence sets the record's number.
	for _, f := range adv.failures() {
		if f.Detailed && f.Record == 0 {
			adv.stored.Detail = f.Detail
		}
	}
	var err error
	if adv.result.Answer, err = json.Marshal(adv.next); err != nil {
		return adv.next, fmt.Errorf("activities: encode the next step: %w", err)
	}
	if adv.result.Kept, err = json.Marshal(adv.stored); err != nil {
		return adv.next, fmt.Errorf("activities: encode the stored step: %w", err)
	}
	// Branches refer to the record for their items, so that record always keeps something.
	if string(adv.result.Kept) == "{}" && adv.next.Branches == nil {
		adv.result.Kept = nil
	}
	write := attempt.Finish
	// The mark of the snapshot must still be the last one.
	if adv.requiresSameState && adv.in.Child != nil {
		write = func(ctx context.Context, result *stream.Result, events ...agui.Event) (uint64, error) {
			return attempt.FinishIfUnchanged(ctx, adv.thread.Mark, result, events...)
		}
	}
	seq, err := write(ctx, &adv.result, adv.events...)
	if err != nil {
		return adv.next, err
	}
	return withSequence(adv.next, seq, adv.in.Tree != nil), nil
}

// recordedAdvance returns the answer in the done record of an earlier attempt. inProgram tells that
// the record has the steps of a program.
func recordedAdvance(ctx context.Context, done *stream.Record, inProgram bool) (runs.AdvanceResult, error) {
	var next runs.AdvanceResult
	err := decodeAnswer(ctx, done, &next)
	return withSequence(next, done.Seq, inProgram), err
}

// withSequence sets the sequence of the done record wherever the answer refers to its own record.
// The answer is encoded before the log assigns the sequence, so both finish and recordedAdvance
// call it. inProgram is that of recordedAdvance.
func withSequence(next runs.AdvanceResult, seq uint64, inProgram bool) runs.AdvanceResult {
	next.Seq = seq
	setRecords(next.TreePosition.Records, seq)
	for _, f := range append(next.TreePosition.Failures(), next.Failed) {
		if f != nil && f.Detailed && f.Record == 0 {
			f.Record = seq
		}
	}
	if next.Answer != nil {
		next.Answer.Seq = seq
	}
	if next.Branches != nil {
		next.Branches.Record = seq
	}
	// The active step finds its tree in this record.
	if next.Active != nil && inProgram {
		next.Active.PipelineStep.Tree = seq
	}
	// The agent finds its prompt in this record.
	if active := next.Active; active != nil && next.Prompts {
		active.PipelineStep.Prompts = append(active.PipelineStep.Prompts, seq)
	}
	return next
}
