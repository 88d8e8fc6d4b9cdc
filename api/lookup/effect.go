package lookup

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/approvals/inbox"
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
// decision, 0 = it has none of its own; then nothing waits for the cursor. continues tells that the
// thread continues with the decision. Otherwise the thread shows no effect yet, for instance
// because a quorum needs more votes, and only the audit and the inbox wait for the cursor. The
// index of the cursor's position has this difference.
func (f *Finder) EffectCursor(snap *snapshot.Snapshot, proposal uint64, continues bool) string {
	if proposal == 0 {
		return f.Log.CursorAt(snap.Seq).String()
	}
	c := f.Log.CursorAt(proposal)
	if continues {
		c.Index = stream.MaxIndex
	}
	return c.String()
}

// AwaitEffect blocks until the log shows that the thread continues with the decision at a cursor,
// or for effectPatience. "" = no cursor, and no wait. The error is an invalid cursor, or the cause
// of ctx.
func (f *Finder) AwaitEffect(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).IsResolved)
}

// AwaitDecision is AwaitEffect for an input. It waits until the log has the decision itself, so
// that the API recognizes an input which repeats the decision.
func (f *Finder) AwaitDecision(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.waitUntil(ctx, thread, cursor, (*snapshot.Snapshot).CarriedOut)
}

// AwaitAudit blocks until the audit of a thread has the decision at a cursor, and the inbox shows
// it, or for effectPatience. A decision of another tenant is not waited for. "" = no cursor, and no
// wait. Errors are those of AwaitEffect.
func (f *Finder) AwaitAudit(ctx context.Context, tenant string, index *inbox.Index, cursor string) error {
	return f.await(ctx, tenant, cursor, func(ctx context.Context, _ stream.Cursor, proposal *stream.Record, content *stream.Decision) error {
		if content.Kind == stream.DecisionToolResult { // the audit has approvals and questions only
			return nil
		}
		history, err := inbox.AwaitDecision(ctx, f.Follower, proposal)
		if err != nil {
			return err
		}
		return index.Await(ctx, tenant, history)
	})
}

// waitUntil blocks until the snapshot of a thread meets a condition of the decision at a cursor, if
// the thread continues with it.
func (f *Finder) waitUntil(ctx context.Context, thread stream.Thread, text string, met func(*snapshot.Snapshot, *stream.Decision) bool) error {
	return f.await(ctx, thread.Tenant, text, func(ctx context.Context, cursor stream.Cursor, proposal *stream.Record, content *stream.Decision) error {
		if cursor.Index == 0 || !proposal.OfThread(thread) {
			return nil
		}
		return f.Snapshots.Await(ctx, f.Follower, thread, func(snap *snapshot.Snapshot) bool { return met(snap, content) })
	})
}

// await calls wait with the proposal at a cursor and its decision, within effectPatience. It fails
// only if text is not a cursor, or with the cause of ctx. A cursor of another log, a record that is
// not a decision of the tenant, a timeout and a failure of the log end the wait without an error,
// because a late effect is no reason to refuse a reader. The latter two are logged.
func (f *Finder) await(ctx context.Context, tenant, text string, wait func(context.Context, stream.Cursor, *stream.Record, *stream.Decision) error) error {
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
	proposal, content, err := f.Log.ProposedDecision(patient, cursor.Seq)
	if err == nil && content != nil && proposal.OfTenant(tenant) {
		err = wait(patient, cursor, proposal, content)
	}
	if err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "a response may lack the effect of an acknowledged decision", "error", err)
	}
	return context.Cause(ctx)
}
