package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/perdure/perdure/agui"
)

// maxUnsent bounds the bytes that an attempt holds before the log has acknowledged them. At the
// bound Emit blocks, which slows the reading of the model's stream: nothing is dropped. One call of
// Emit may exceed the bound by its own events.
const maxUnsent = 1 << 20

// Attempt is the right of one attempt of a step to write to a lane, from Log.Begin or Log.BeginStep to
// Close. A caller emits events, and then calls one of Finish, FinishIfUnchanged, Leave and Fail.
//
// The attempt owns a goroutine, the sender, which keeps one message in flight: all events since the
// last acknowledgement are one frame. So a single token leaves at once, and a burst becomes one
// record. When the sender is fenced or the log is lost, the attempt ends with that cause, and Emit,
// Flush and Finish return it.
//
// One goroutine at a time may call the methods that write; Note and Context may be called
// concurrently with them. The caller must call Close, which waits for the sender.
type Attempt struct {
	log               *Log
	place             Place  // After counts only until Begin has written the attempt record
	writer            string // the name of this attempt in the headers of its records
	first             uint64 // sequence of its first record
	followsUnfinished bool   // an earlier attempt of the step has begun; see FollowsUnfinished

	ctx    context.Context         // ends when the attempt cannot write any more; its cause is the reason
	cancel context.CancelCauseFunc // ends ctx; the first cause counts
	wait   sync.WaitGroup          // for the sender, and for the run's entry in the index (BeginRun)

	mu      sync.Mutex // guards the fields up to sending
	changed *sync.Cond // broadcast after every change of them, and when a context ends
	unsent  [][]byte   // encoded events that no frame has yet, in order
	bytes   int        // of unsent
	closing bool       // the sender stops as soon as unsent fits into room
	room    int        // bytes of unsent events that the last record takes; set with closing
	note    []byte     // for the next frame; nil = none
	sending bool       // a frame is in flight

	// The sender owns these until it has ended; then the caller of Finish or Fail reads them.
	frame int    // number of frames written
	last  uint64 // sequence of the attempt's last record: what the next one must follow
}

// newAttempt returns an attempt whose attempt record has the sequence last, and starts its sender.
func newAttempt(l *Log, p Place, writer string, last uint64) *Attempt {
	a := &Attempt{log: l, place: p, writer: writer, first: last, last: last}
	a.changed = sync.NewCond(&a.mu)
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.wait.Go(a.runSender)
	return a
}

// FollowsUnfinished reports whether an earlier attempt of the step began and did not finish.
// Whether the side effects of that attempt happened is unknown.
func (a *Attempt) FollowsUnfinished() bool { return a.followsUnfinished }

// First returns the sequence of the attempt's first record, which follows all records that the
// workflow knew when it scheduled the step.
func (a *Attempt) First() uint64 { return a.first }

// Context returns a child of ctx that also ends when the attempt is fenced or the log is lost, with
// the reason as its cause. The step's work runs under it, so a fenced worker stops its model call.
// The caller calls the returned function to release the child.
func (a *Attempt) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Emit adds events to the next frame, in order. It does not wait for an acknowledgement (see
// Flush), only for room (see maxUnsent). The error is the cause of the attempt's end, or that of
// ctx.
func (a *Attempt) Emit(ctx context.Context, events ...agui.Event) error {
	return a.emit(ctx, events, nil)
}

// emit is Emit; a hidden place leaves the events of shownCalls in.
func (a *Attempt) emit(ctx context.Context, events []agui.Event, shownCalls []string) error {
	lines, err := a.place.encode(events, shownCalls)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, a.wake)
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.bytes >= maxUnsent && ctx.Err() == nil && a.ctx.Err() == nil {
		a.changed.Wait()
	}
	if err := a.endCause(ctx); err != nil {
		return err
	}
	for _, line := range lines {
		a.unsent = append(a.unsent, line)
		a.bytes += len(line)
	}
	a.changed.Broadcast()
	return nil
}

// endCause returns the cause of the attempt's end, else that of ctx; nil = neither has ended.
// Callers may hold mu.
func (a *Attempt) endCause(ctx context.Context) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Note sets the attempt's note, which becomes the result of the next frame's record. A newer note
// replaces an earlier one; [Log.AttemptOutputs] returns the newest. Note does not wait for the log:
// call Flush before a side effect that the note must precede.
func (a *Attempt) Note(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("stream: encode note: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note = body
	a.changed.Broadcast()
	return nil
}

// Flush waits until the log has acknowledged all events and the note. The error is the cause of the
// attempt's end, or that of ctx.
func (a *Attempt) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, a.wake)
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for (a.sending || len(a.unsent) > 0 || a.note != nil) && ctx.Err() == nil && a.ctx.Err() == nil {
		a.changed.Wait()
	}
	return a.endCause(ctx)
}

// Writer returns the attempt's name in the headers of its records.
func (a *Attempt) Writer() string { return a.writer }

// wake lets all waiting methods check their contexts again. A sync.Cond knows no context, so each
// of them calls wake when its context ends.
func (a *Attempt) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// Finish writes the attempt's done record, with the step's result, and returns its sequence after
// the log has acknowledged it. Nothing can be written afterwards. The record must follow the
// attempt's last one, else the error is ErrFenced: another attempt has taken the lane.
//
// The given events are part of that record, unless they are too large for it. So a tool's result
// and the end of its step are one record, and no reader has one without the other. Larger events
// precede the done record in frames of their own.
func (a *Attempt) Finish(ctx context.Context, result *Result, events ...agui.Event) (uint64, error) {
	lines, size, err := a.encodeEvents(events, result.ShownCalls)
	if err != nil {
		return 0, err
	}
	if size > MaxLine+1 {
		if err := a.emit(ctx, events, result.ShownCalls); err != nil {
			return 0, err
		}
		lines, size = nil, 0
	}
	remaining, err := a.drain(ctx, max(0, MaxFrame-MaxLine-size))
	if err != nil {
		return 0, err
	}
	seq, err := a.writeDone(ctx, result, append(remaining, lines...), nil)
	if err != nil {
		a.cancel(err)
		return 0, err
	}
	a.cancel(errors.New("stream: the attempt is finished"))
	return seq, nil
}

// encodeEvents encodes events, and returns what they take in a record, in bytes. shownCalls are
// those of the result.
func (a *Attempt) encodeEvents(events []agui.Event, shownCalls []string) (lines [][]byte, size int, err error) {
	lines, err = a.place.encode(events, shownCalls)
	for _, line := range lines {
		size += storedSize(line)
	}
	return lines, size, err
}

// writeDone writes the done record; with a mark unless condition is nil. The sender must not write
// concurrently: it has ended, or nothing was emitted. writeDone attributes the result's messages to
// the place's subagent.
func (a *Attempt) writeDone(ctx context.Context, result *Result, lines [][]byte, condition *mark) (uint64, error) {
	for i := range result.Messages {
		result.Messages[i].SubagentRunID = cmp.Or(result.Messages[i].SubagentRunID, a.place.Subagent)
	}
	if result.Repair != nil {
		result.Repair.SubagentRunID = a.place.Subagent
	}
	body, err := json.Marshal(result)
	if err != nil {
		return 0, fmt.Errorf("stream: encode result: %w", err)
	}
	s := stamp{kind: KindDone, step: a.place.Step, writer: a.writer, frame: a.frame + 1}
	return a.log.write(ctx, a.subject(), s, a.last, lines, body, condition)
}

// drain has the sender write all events except for those that fit into room, waits for it to end,
// and returns these last events. An error means that the attempt or ctx has ended; the attempt is
// ended then, and the events that the log has not acknowledged are lost with it.
func (a *Attempt) drain(ctx context.Context, room int) ([][]byte, error) {
	stop := context.AfterFunc(ctx, a.wake)
	defer stop()
	a.mu.Lock()
	a.closing, a.room = true, room // from here on the sender leaves the last room bytes to the caller
	a.changed.Broadcast()
	for (a.sending || a.bytes > room) && a.endCause(ctx) == nil {
		a.changed.Wait()
	}
	remaining := a.unsent
	a.unsent, a.bytes = nil, 0
	a.mu.Unlock()
	stopWriting := context.AfterFunc(ctx, func() { a.cancel(context.Cause(ctx)) }) // else it would retry until the outage ends
	defer stopWriting()
	a.wait.Wait()
	err := a.endCause(ctx)
	if err != nil {
		a.cancel(err)
	}
	return remaining, err
}

// Leave ends an attempt without finishing the step. Readers see the given events until the next
// attempt begins, which supersedes them. Leave returns when the log has acknowledged them.
func (a *Attempt) Leave(ctx context.Context, events ...agui.Event) error {
	if err := a.Emit(ctx, events...); err != nil {
		return err
	}
	_, err := a.drain(ctx, 0)
	a.Close()
	return err
}

// Fail ends the last attempt of a step that has failed for good. It writes an attempt record of a
// new writer, which retracts the events of this attempt. Its result is the detail, which Log.Detail
// returns. Fail returns the record's sequence; nothing can be written afterwards.
func (a *Attempt) Fail(ctx context.Context, detail string) (uint64, error) {
	if _, err := a.drain(ctx, 0); err != nil {
		return 0, err
	}
	a.Close()
	s := stamp{kind: KindAttempt, step: a.place.Step, writer: newWriter(a.place.Execution)}
	return a.log.put(ctx, a.place, s, a.last, failureDetail{Detail: detail}, nil)
}

// Close ends the attempt and waits for the sender. Events that are not acknowledged may or may not
// reach the log. Without Finish or Fail the step stays open for the next attempt. Close may be
// called several times, and after Finish.
func (a *Attempt) Close() {
	a.cancel(context.Canceled)
	a.wake()
	a.wait.Wait()
}

func (a *Attempt) subject() string { return a.log.LaneSubject(a.place.Run, a.place.Lane) }

// runSender writes one frame after the other, each after the acknowledgement of the one before. It
// ends when nextFrame has no more frames, or ends the attempt with the error of a write.
func (a *Attempt) runSender() {
	defer a.onSenderEnd()
	stop := context.AfterFunc(a.ctx, a.wake)
	defer stop()
	for {
		frame, note, ok := a.nextFrame()
		if !ok {
			return
		}
		s := stamp{kind: KindEvents, step: a.place.Step, writer: a.writer, frame: a.frame + 1}
		seq, err := a.log.write(a.ctx, a.subject(), s, a.last, frame, note, nil)
		if err != nil {
			a.cancel(err)
			return
		}
		a.frame, a.last = a.frame+1, seq
	}
}

// nextFrame waits for events or a note, and returns the note and as many events as fit a frame. ok
// is false when the attempt has ended, or when it is closing and the rest fits the last record. The
// last record has the step's result, so a note that is pending then is dropped.
func (a *Attempt) nextFrame() (frame [][]byte, note []byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sending = false
	a.changed.Broadcast()
	for len(a.unsent) == 0 && a.note == nil && !a.closing && a.ctx.Err() == nil {
		a.changed.Wait()
	}
	if a.ctx.Err() != nil || a.closing && a.bytes <= a.room {
		return nil, nil, false
	}
	note, a.note = a.note, nil
	n, size := 0, storedSize(note)
	for n < len(a.unsent) && (n == 0 || size+storedSize(a.unsent[n]) < MaxFrame) {
		size += storedSize(a.unsent[n])
		n++
	}
	frame, a.unsent = a.unsent[:n:n], a.unsent[n:]
	for _, line := range frame {
		a.bytes -= len(line)
	}
	a.sending = true
	a.changed.Broadcast()
	return frame, note, true
}

// storedSize returns how many bytes a line takes in a record, with its line feed. A longer line
// than MaxLine becomes a reference, which is shorter: the result is an upper bound.
func storedSize(line []byte) int { return min(len(line), MaxLine) + 1 }

// onSenderEnd wakes waiting methods after the sender has ended.
func (a *Attempt) onSenderEnd() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sending = false
	a.changed.Broadcast()
}

// FinishIfUnchanged is Finish for a step that changes the state depending on its value (mark.go).
// The given events are part of the done record whatever their size is: the largest ones become
// blobs if need be.
//
// lastMark is Snapshot.Mark of the snapshot that the step has read: the sequence of the run's last
// mark. If a later mark exists, FinishIfUnchanged writes no done record and returns ErrStale. The
// caller then computes the step on a new snapshot and calls it again.
//
// Events that were emitted before are in the log when FinishIfUnchanged returns; they depend on no
// mark. Nothing can be emitted afterwards.
func (a *Attempt) FinishIfUnchanged(ctx context.Context, lastMark uint64, result *Result, events ...agui.Event) (uint64, error) {
	lines, _, err := a.encodeEvents(events, result.ShownCalls)
	if err != nil {
		return 0, err
	}
	if _, err := a.drain(ctx, 0); err != nil {
		return 0, err
	}
	seq, err := a.writeDone(ctx, result, lines, &mark{a.log.LaneSubject(a.place.Run, laneState), lastMark})
	switch {
	case errors.Is(err, ErrStale):
		return 0, err
	case err != nil:
		a.cancel(err)
		return 0, err
	}
	a.cancel(errors.New("stream: the attempt is finished"))
	return seq, nil
}
