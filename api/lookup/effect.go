package lookup

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The workflow of a thread acknowledges a decision, and an activity writes its effect to the log a
// moment later. The acknowledgement has a cursor. A reader that sends it as waitFor is answered
// when the log shows the effect.

// effectPatience bounds how long a reader waits for an effect. Then it is answered with what the
// log has.
const effectPatience = 5 * time.Second

// EffectCursor returns the cursor of an acknowledgement. proposal is the record of the decision if
// the thread continues with it. 0 = the log will show no effect yet: the cursor is the position of
// the thread.
func (f *Finder) EffectCursor(now *snapshot.Snapshot, proposal uint64) string {
	if proposal == 0 {
		proposal = now.Seq
	}
	return f.Log.CursorAt(proposal).String()
}

// AwaitEffect waits until the log shows that the thread continues with the decision of a cursor; ""
// = none.
func (f *Finder) AwaitEffect(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).Shows)
}

// AwaitDecision is AwaitEffect for an input: it waits until the log has the decision itself, so
// that an input that repeats the decision is recognized.
func (f *Finder) AwaitDecision(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).CarriedOut)
}

// waitUntil waits until the thread meets a condition of the decision. It fails only if the text is
// not a cursor, or with ctx. A replaced log has nothing to wait for, and a late effect is no reason
// to refuse a reader.
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
