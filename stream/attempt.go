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

// maxUnsent bounds the bytes that an attempt holds before the log has acknowledged them. Emit waits
// when it is reached, so that the reader of the model waits, and nothing is dropped.
const maxUnsent = 1 << 20

// Attempt is the right of one attempt of a step to write to a lane. One goroutine at a time may
// call Emit. The attempt owns a goroutine, which sends all events since the last acknowledgement as
// one frame. Close waits for it, and must be called.
type Attempt struct {
	log    *Log
	place  Place
	writer string
	resume bool

	ctx  context.Context // ends, with the cause, when the attempt can't go on
	fail context.CancelCauseFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	unsent  [][]byte
	bytes   int
	closing bool
	room    int // for unsent events in the last frame, once closing
	note    []byte
	sending bool
	frame   int
	last    uint64
}

func newAttempt(l *Log, p Place, writer string, last uint64, resumed bool) *Attempt {
	a := &Attempt{log: l, place: p, writer: writer, resume: resumed, last: last}
	a.changed = sync.NewCond(&a.mu)
	a.ctx, a.fail = context.WithCancelCause(context.Background())
	a.wait.Go(a.send)
	return a
}

// Resumed reports whether an earlier attempt of the step began and did not finish. Whether its side
// effects happened is unknown.
func (a *Attempt) Resumed() bool { return a.resume }

// Context returns a child of ctx that also ends when the attempt is fenced or the log is lost, with
// the reason as its cause. The step's work runs under it.
func (a *Attempt) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Emit adds events to the next frame, in order. It waits only for room.
func (a *Attempt) Emit(ctx context.Context, events ...agui.Event) error {
	lines, err := a.place.encode(events)
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
	if err := a.ended(ctx); err != nil {
		return err
	}
	for _, line := range lines {
		a.unsent = append(a.unsent, line)
		a.bytes += len(line)
	}
	a.changed.Broadcast()
	return nil
}

func (a *Attempt) ended(ctx context.Context) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Note sets the attempt's note, which the next frame carries. The newest note replaces earlier
// ones; [Log.Spoken] returns it. Note does not wait: Flush does.
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

// Flush waits until the log has acknowledged all events and the note.
func (a *Attempt) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, a.wake)
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for (a.sending || len(a.unsent) > 0 || a.note != nil) && ctx.Err() == nil && a.ctx.Err() == nil {
		a.changed.Wait()
	}
	return a.ended(ctx)
}

// Writer returns the attempt's name in the log.
func (a *Attempt) Writer() string { return a.writer }

func (a *Attempt) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// Finish writes the attempt's last frame, with the step's result, and returns its sequence after
// the log acknowledged it. Nothing can be written afterwards. The events stand in that frame too,
// unless they are too many: a tool's result and the end of its step are one record, so that nobody
// has the one without the other.
func (a *Attempt) Finish(ctx context.Context, result *Result, events ...agui.Event) (uint64, error) {
	lines, size, err := a.lines(events)
	if err != nil {
		return 0, err
	}
	if size > MaxLine+1 {
		if err := a.Emit(ctx, events...); err != nil {
			return 0, err
		}
		lines, size = nil, 0
	}
	rest, err := a.drain(ctx, max(0, MaxFrame-MaxLine-size))
	if err != nil {
		return 0, err
	}
	seq, err := a.finish(ctx, result, append(rest, lines...), nil)
	if err != nil {
		a.fail(err)
		return 0, err
	}
	a.fail(errors.New("stream: the attempt is finished"))
	return seq, nil
}

func (a *Attempt) lines(events []agui.Event) (lines [][]byte, size int, err error) {
	lines, err = a.place.encode(events)
	for _, line := range lines {
		size += stored(line)
	}
	return lines, size, err
}

// finish writes the last frame; on a mark unless that is nil.
func (a *Attempt) finish(ctx context.Context, result *Result, lines [][]byte, on *mark) (uint64, error) {
	for i := range result.Messages {
		result.Messages[i].SubagentRunID = cmp.Or(result.Messages[i].SubagentRunID, a.place.Subagent)
	}
	body, err := json.Marshal(result)
	if err != nil {
		return 0, fmt.Errorf("stream: encode result: %w", err)
	}
	s := stamp{kind: KindDone, step: a.place.Step, writer: a.writer, frame: a.frame + 1}
	return a.log.writeOn(ctx, a.subject(), s, a.last, lines, body, on)
}

// drain waits until the sender is idle and what remains fits the room in the last frame, and takes
// that remainder.
func (a *Attempt) drain(ctx context.Context, room int) ([][]byte, error) {
	stop := context.AfterFunc(ctx, a.wake)
	defer stop()
	a.mu.Lock()
	a.closing, a.room = true, room // the sender leaves so much for us
	a.changed.Broadcast()
	for (a.sending || a.bytes > room) && a.ended(ctx) == nil {
		a.changed.Wait()
	}
	rest := a.unsent
	a.unsent, a.bytes = nil, 0
	a.mu.Unlock()
	err := a.ended(ctx)
	if err != nil {
		a.fail(err) // the sender may be waiting out an outage
	}
	a.wait.Wait()
	return rest, err
}

// Leave ends an attempt without finishing the step, after events that live readers see until
// another attempt begins.
func (a *Attempt) Leave(ctx context.Context, events ...agui.Event) error {
	if err := a.Emit(ctx, events...); err != nil {
		return err
	}
	_, err := a.drain(ctx, 0)
	a.Close()
	return err
}

// Fail ends an attempt of a step that is not attempted again: what it wrote is withdrawn, and the
// record keeps the detail (see Log.Detail). Nothing can be written afterwards. It returns the
// record's sequence.
func (a *Attempt) Fail(ctx context.Context, detail string) (uint64, error) {
	if _, err := a.drain(ctx, 0); err != nil {
		return 0, err
	}
	a.Close()
	s := stamp{kind: KindAttempt, step: a.place.Step, writer: newWriter(a.place.Execution)}
	return a.log.put(ctx, a.place, s, a.last, failed{Detail: detail}, nil)
}

// Close ends the attempt. What was emitted and not acknowledged may or may not reach the log;
// without Finish the step stays open for the next attempt.
func (a *Attempt) Close() {
	a.fail(context.Canceled)
	a.wake()
	a.wait.Wait()
}

func (a *Attempt) subject() string { return a.log.LaneSubject(a.place.Run, a.place.Lane) }

// send is the lane's one sequential writer.
func (a *Attempt) send() {
	defer a.idle()
	stop := context.AfterFunc(a.ctx, a.wake)
	defer stop()
	for {
		frame, note, ok := a.next()
		if !ok {
			return
		}
		s := stamp{kind: KindEvents, step: a.place.Step, writer: a.writer, frame: a.frame + 1}
		seq, err := a.log.write(a.ctx, a.subject(), s, a.last, frame, note)
		if err != nil {
			a.fail(err)
			return
		}
		a.frame, a.last = a.frame+1, seq
	}
}

// next takes the events of the next frame, up to a frame's size, and the note. It waits for an
// event or a note, and ends when the attempt does or when the rest is the last frame's. The last
// frame has a result, so it carries no note.
func (a *Attempt) next() (frame [][]byte, note []byte, ok bool) {
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
	n, size := 0, stored(note)
	for n < len(a.unsent) && (n == 0 || size+stored(a.unsent[n]) < MaxFrame) {
		size += stored(a.unsent[n])
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

// stored returns what a line takes in a frame: what is too large is a reference there.
func stored(line []byte) int { return min(len(line), MaxLine) + 1 }

func (a *Attempt) idle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sending = false
	a.changed.Broadcast()
}

// FinishOn is Finish for a step that changes the state depending on its value. behind is the last
// mark of the run in the snapshot that the caller has read. FinishOn returns ErrStale if there is a
// later one, and may be called again. The step must not have emitted events. Events that are too
// many for one record are written by Finish, without a mark.
func (a *Attempt) FinishOn(ctx context.Context, behind uint64, result *Result, events ...agui.Event) (uint64, error) {
	lines, size, err := a.lines(events)
	if err != nil {
		return 0, err
	}
	if size > MaxLine+1 {
		return a.Finish(ctx, result, events...)
	}
	seq, err := a.finish(ctx, result, lines, &mark{a.log.LaneSubject(a.place.Run, laneState), behind})
	switch {
	case errors.Is(err, ErrStale):
		return 0, err
	case err != nil:
		a.fail(err)
		return 0, err
	}
	a.fail(errors.New("stream: the attempt is finished"))
	return seq, nil
}
