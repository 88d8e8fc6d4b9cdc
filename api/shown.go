package api

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The thread's workflow acknowledges a decision, and an activity writes its effect to the log a moment later. The
// acknowledgement has a cursor, and a reader that passes it on as waitFor is answered when the log shows the effect.

// showPatience bounds how long a reader waits for that. Then the answer has what the log has.
const showPatience = 5 * time.Second

// decisionCursor is the cursor of an acknowledgement. proposal is the record of the decision if the thread goes on with
// it; 0 = the log will show no effect yet, and the cursor is where the thread was.
func (s *Server) decisionCursor(now *snapshot.Snapshot, proposal uint64) string {
	if proposal == 0 {
		proposal = now.Seq
	}
	return s.Log.CursorAt(proposal).String()
}

// awaitShown waits until the log shows that the thread goes on with what was acknowledged with a cursor.
func (s *Server) awaitShown(ctx context.Context, thread stream.Thread, cursor string) error {
	return s.awaitDecision(ctx, thread, cursor, (*snapshot.Snapshot).Shows)
}

// awaitCarriedOut is awaitShown for an input: the log must have the decision itself, so that repeating it in the input is recognized.
func (s *Server) awaitCarriedOut(ctx context.Context, thread stream.Thread, cursor string) error {
	return s.awaitDecision(ctx, thread, cursor, (*snapshot.Snapshot).CarriedOut)
}

// awaitDecision waits until the thread meets a condition of the decision whose cursor the text is; "" = of none. It fails only if the text is not a cursor,
// or with ctx. A log that was replaced has nothing to wait for, and a late effect is no reason to refuse a reader.
func (s *Server) awaitDecision(ctx context.Context, thread stream.Thread, text string, met func(*snapshot.Snapshot, *stream.Decision) bool) error {
	if text == "" {
		return nil
	}
	cursor, err := s.Log.ParseCursor(text)
	if errors.Is(err, stream.ErrLogReplaced) {
		return nil
	}
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, showPatience)
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	said, err := s.Log.DecisionIn(patient, thread, cursor.Seq)
	if err == nil && said != nil {
		err = s.Snapshots.Await(patient, s.Follower, thread, func(now *snapshot.Snapshot) bool { return met(now, said) })
	}
	if err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "a reader is answered before the log shows a decision that was acknowledged", "thread", thread.ID, "error", err)
	}
	return context.Cause(ctx)
}
