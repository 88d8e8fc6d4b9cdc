package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// addAttempt begins an attempt. It supersedes the attempt before. With a result the record is no
// attempt, but the end of a step that has failed for good.
func (f *Fold) addAttempt(ctx context.Context, rec *stream.Record) error {
	if rec.Lane.IsAgentLane() {
		f.endWait(f.agentOn(rec.Lane), rec)
	}
	u, err := f.unitOn(ctx, rec)
	if err != nil {
		return err
	}
	if err := f.supersede(ctx, u, rec, lostWorker); err != nil {
		return err
	}
	if rec.HasResult() {
		var end struct {
			Detail string `json:"detail"`
		}
		if err := rec.Result(ctx, &end); err != nil {
			return err
		}
		if u.node != nil && u.node.span.Error == nil {
			f.fail(u.node, rec.Time, newError("failed", end.Detail, ""))
		}
		return nil
	}
	return f.beginAttempt(ctx, rec)
}

// beginAttempt begins an attempt of a unit.
func (f *Fold) beginAttempt(ctx context.Context, rec *stream.Record) error {
	u, err := f.unitOn(ctx, rec)
	if err != nil {
		return err
	}
	number := 1
	if u.attempt != nil {
		number = u.attempt.Number + 1
	}
	if u.node != nil && u.kind != unitEnd {
		number = len(u.node.attempts) + 1
	}
	before := u.attempt
	u.attempt = &attempt{writer: rec.Writer}
	u.attempt.Number, u.attempt.StartedAt, u.attempt.Status = number, milliseconds(rec.Time), StatusRunning
	if u.node == nil || u.kind == unitEnd {
		return nil
	}
	if !u.node.isOpen() {
		f.reopen(u.node)
	}
	u.node.attempts = append(u.node.attempts, u.attempt)
	if before != nil {
		f.retry(u.node, before)
		u.node.span.Retry.NextAt = nil
	}
	f.touch(u.node, rec)
	return nil
}

// retry notes that a failed attempt is followed by another one.
func (f *Fold) retry(n *node, failed *attempt) {
	if n.span.Retry == nil {
		n.span.Retry = &Retry{Since: *failed.EndedAt}
	}
	r := *n.span.Retry // copied, because an exported span refers to it
	r.Attempt, r.Error, r.NextAt = failed.Number+1, failed.Error, nil
	n.span.Retry = &r
	f.change(n)
}

// lostWorker is the error of an attempt that another one has superseded before it ended.
var lostWorker = &Error{
	Code: runs.ErrorWorkerLost, Message: "the worker was killed, or lost its connections, before the attempt ended",
	Hint: hints[runs.ErrorWorkerLost],
}

// supersede ends the attempt of a unit, if it runs, and takes its content as withdrawn.
func (f *Fold) supersede(ctx context.Context, u *unit, rec *stream.Record, why *Error) error {
	a := u.attempt
	if a == nil {
		return nil
	}
	if a.EndedAt == nil {
		at := milliseconds(rec.Time)
		a.endWait(rec.Time)
		a.EndedAt, a.Status, a.Error = &at, StatusFailed, why
		if why == nil {
			a.Status = StatusCancelled
		}
	}
	err := f.withdraw(ctx, a)
	if u.node != nil {
		f.change(u.node)
	}
	return err
}

// withdraw collects what an attempt has streamed, as far as there is room.
func (f *Fold) withdraw(ctx context.Context, a *attempt) error {
	w := withdrawal{room: min(MaxWithdrawn, MaxAllWithdrawn-f.withdrawnBytes), calls: map[string]int{}}
	before := w.room
	records := a.records
	a.records = nil
	for _, rec := range records {
		if w.Truncated { // the other records cannot add anything
			break
		}
		if err := w.add(ctx, rec); err != nil {
			return err
		}
	}
	f.withdrawnBytes += before - w.room
	a.Withdrawn = w.result(a.isCut)
	return nil
}

// addEvents adds the record of an attempt: its failure, its note, or events that are kept for the
// case that they are withdrawn.
func (f *Fold) addEvents(ctx context.Context, rec *stream.Record) error {
	u := f.units[rec.Lane]
	if u == nil || u.attempt == nil || u.attempt.writer != rec.Writer {
		return nil
	}
	if u.node != nil {
		u.node.lastSeq = rec.Seq
	}
	failed, note, err := rec.AttemptNote(ctx)
	if err != nil {
		return err
	}
	switch {
	case failed != nil:
		f.failAttempt(rec, u, failed)
	case note != nil && u.node != nil:
		if err := f.addNote(u, rec.Time, note); err != nil {
			return fmt.Errorf("trace: note of record %d: %w", rec.Seq, err)
		}
	}
	a := u.attempt
	if a.bytes += rec.Size(); a.bytes > maxKept && u.kind != unitOther { // all steps of an advance count
		a.isCut = true
		return nil
	}
	a.records = append(a.records, rec)
	return nil
}

// addNote adds the note of a model call: its model, whether it waits, and its usage so far.
func (f *Fold) addNote(u *unit, at time.Time, raw json.RawMessage) error {
	var note struct {
		Model string     `json:"model"`
		Usage runs.Usage `json:"usage"`
		Free  bool       `json:"free"`
		Waits bool       `json:"waits"`
	}
	if err := json.Unmarshal(raw, &note); err != nil {
		return err
	}
	u.attempt.Model = note.Model
	if note.Waits {
		u.attempt.Wait = &AdmissionWait{StartedAt: milliseconds(at)}
	} else {
		u.attempt.endWait(at)
	}
	if u.attempt.Usage = nil; !note.Free {
		usage := tokenUsage(note.Usage)
		u.attempt.Usage = &usage
	}
	if u.kind == unitModel {
		u.node.span.Name = note.Model
	}
	u.node.span.Model = note.Model
	f.change(u.node)
	return nil
}

// failAttempt ends an attempt that has reported its failure.
func (f *Fold) failAttempt(rec *stream.Record, u *unit, failed *stream.Failure) {
	a, at := u.attempt, milliseconds(rec.Time)
	a.endWait(rec.Time)
	a.EndedAt, a.Status, a.Error = &at, StatusFailed, newError(failed.Code, strings.TrimSuffix(failed.Message+": "+failed.Detail, ": "), failed.Hint)
	if failed.Model != "" {
		a.Model = failed.Model
	}
	if u.node == nil { // only a step that fails is worth a span
		u.node = f.begin(rec, a.StartedAt, f.agentOn(rec.Lane).container(), KindStep, "advance")
		u.node.attempts = append(u.node.attempts, a)
	}
	f.touch(u.node, rec)
	if failed.Final {
		f.fail(u.node, rec.Time, a.Error)
		return
	}
	f.retry(u.node, a)
	if failed.Pause > 0 {
		next := milliseconds(rec.Time.Add(failed.Pause))
		u.node.span.Retry.NextAt = &next
	}
}
