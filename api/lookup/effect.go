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

// effectTimeout bounds how long a reader waits for an effect. Then the answer is what the log has.
const effectTimeout = 5 * time.Second

// LatestCursor returns the cursor of an acknowledgement that has no record of its own: that of the
// snapshot. Nothing waits for it.
func (f *Finder) LatestCursor(snap *snapshot.Snapshot) string {
	return f.Log.CursorAt(snap.Seq).String()
}

// ProposalCursor returns the cursor of a decision with which the thread does not continue yet, for
// instance because a quorum needs more votes. Only the audit and the inbox wait for it. proposal is
// the record of the decision.
func (f *Finder) ProposalCursor(proposal uint64) string {
	return f.Log.CursorAt(proposal).String()
}

// EffectCursor returns the cursor of a decision with which the thread continues. Readers of the
// thread wait for its effect, too: the index of the cursor's position, stream.MaxIndex instead of
// 0, tells AwaitEffect that. proposal is the record of the decision.
func (f *Finder) EffectCursor(proposal uint64) string {
	c := f.Log.CursorAt(proposal)
	c.Index = stream.MaxIndex
	return c.String()
}

// AwaitEffect blocks until the log shows that the thread continues with the decision at a cursor,
// or for effectTimeout. "" = no cursor, and no wait. The error is an invalid cursor, or the cause
// of ctx.
func (f *Finder) AwaitEffect(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.awaitSnapshot(ctx, thread, cursor, (*snapshot.Snapshot).IsResolved)
}

// AwaitDecision is AwaitEffect for an input. It waits until the log has the decision itself, so
// that the API recognizes an input which repeats the decision.
func (f *Finder) AwaitDecision(ctx context.Context, thread stream.Thread, cursor string) error {
	return f.awaitSnapshot(ctx, thread, cursor, (*snapshot.Snapshot).CarriedOut)
}

// AwaitAudit blocks until the audit of a thread has the decision at a cursor, and the inbox shows
// it, or for effectTimeout. A decision of another tenant is not waited for. "" = no cursor, and no
// wait. Errors are those of AwaitEffect.
func (f *Finder) AwaitAudit(ctx context.Context, tenant string, index *inbox.Index, cursor string) error {
	return f.awaitDecision(ctx, tenant, cursor, func(ctx context.Context, _ stream.Cursor, proposal *stream.Record, content *stream.Decision) error {
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

// awaitSnapshot blocks until the snapshot of a thread meets a condition of the decision at a
// cursor, if the thread continues with it.
func (f *Finder) awaitSnapshot(ctx context.Context, thread stream.Thread, text string, isMet func(*snapshot.Snapshot, *stream.Decision) bool) error {
	return f.awaitDecision(ctx, thread.Tenant, text, func(ctx context.Context, cursor stream.Cursor, proposal *stream.Record, content *stream.Decision) error {
		if cursor.Index == 0 || !proposal.OfThread(thread) {
			return nil
		}
		return f.Snapshots.Await(ctx, f.Follower, thread, func(snap *snapshot.Snapshot) bool { return isMet(snap, content) })
	})
}

// awaitDecision calls wait with the proposal at a cursor and its decision, within effectTimeout. It
// fails only if text is not a cursor, or with the cause of ctx. A cursor of another log, a record
// that is not a decision of the tenant, a timeout and a failure of the log end the wait without an
// error, because a late effect is no reason to refuse a reader. The latter two are logged.
func (f *Finder) awaitDecision(ctx context.Context, tenant, text string, wait func(context.Context, stream.Cursor, *stream.Record, *stream.Decision) error) error {
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
	waitCtx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	defer context.AfterFunc(f.Closed, cancel)()
	proposal, content, err := f.Log.ProposedDecision(waitCtx, cursor.Seq)
	if err == nil && content != nil && proposal.OfTenant(tenant) {
		err = wait(waitCtx, cursor, proposal, content)
	}
	if err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "a response may lack the effect of an acknowledged decision", "error", err)
	}
	return context.Cause(ctx)
}
