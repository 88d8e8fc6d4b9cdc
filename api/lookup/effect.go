package lookup

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The workflow of a thread acknowledges a decision, and an activity writes its effect to the log a
// moment later. A client that reads at once could miss the effect of its own request. So the
// acknowledgement has a cursor, and a reader that sends it as waitFor gets an answer only when the
// log shows the effect.

// effectPatience bounds how long a reader waits for an effect. Then the answer is what the log has.
const effectPatience = 5 * time.Second

// EffectCursor returns the cursor of an acknowledgement, for waitFor. proposal is the record of the
// decision if the thread continues with it. 0 means that the log will show no effect yet, for
// instance because a quorum needs more votes; then the cursor is the position of the thread, and
// nothing waits for it.
func (f *Finder) EffectCursor(now *snapshot.Snapshot, proposal uint64) string {
	if proposal == 0 {
		proposal = now.Seq
	}
	return f.Log.CursorAt(proposal).String()
}

// AwaitEffect blocks until the log shows that the thread continues with the decision at a cursor,
// or for effectPatience. "" = no cursor, and no wait. The error is an invalid cursor, or the cause
// of ctx.
func (f *Finder) AwaitEffect(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).Shows)
}

// AwaitDecision is AwaitEffect for an input. It waits until the log has the decision itself, so
// that the API recognizes an input which repeats the decision.
func (f *Finder) AwaitDecision(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).CarriedOut)
}

// waitUntil blocks until the snapshot of a thread meets a condition of the decision at a cursor. It
// fails only if text is not a cursor, or with the cause of ctx. A cursor of another log, a record
// that is not a decision, a timeout and a failure of the log end the wait without an error, because
// a late effect is no reason to refuse a reader. The latter two are logged.
func (f *Finder) waitUntil(ctx context.Context, thread stream.Thread, text string, met func(*snapshot.Snapshot, *stream.Decision) bool) error {
	if text == "" {
		return nil
	}
	cursor, err := f.Log.ParseCursor(text)
	if errors.Is(err, stream.ErrLogReplaced) {
		return nil
	}
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, effectPatience)
	defer cancel()
	defer context.AfterFunc(f.Closed, cancel)()
	said, err := f.Log.DecisionIn(patient, thread, cursor.Seq)
	if err == nil && said != nil {
		err = f.Snapshots.Await(patient, f.Follower, thread, func(now *snapshot.Snapshot) bool { return met(now, said) })
	}
	if err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "a reader is answered before the log shows a decision that was acknowledged", "thread", thread.ID, "error", err)
	}
	return context.Cause(ctx)
}
