package admission

import (
	"context"
	"errors"
	"time"
)

// Wait is how long a call may wait.
type Wait struct {
	// Longest is the longest time; then the call fails with [llm.CodeProviderBusy].
	Longest time.Duration
	// Begun is called when the call has waited for 100 ms; nil = nothing. It is called at most once, before
	// Admit returns.
	Begun func()
}

// errTooLong is the error of a call that has waited for the longest time.
var errTooLong = errors.New("admission: the call has waited for too long")

// admissionWait is the wait of one call, over several events. One goroutine uses it.
type admissionWait struct {
	wait            Wait
	longest, notice *time.Timer
}

// newAdmissionWait begins a wait.
func newAdmissionWait(wait Wait) *admissionWait {
	return &admissionWait{wait: wait, longest: time.NewTimer(wait.Longest), notice: time.NewTimer(noticeAfter)}
}

// stop releases the timers.
func (w *admissionWait) stop() {
	w.longest.Stop()
	w.notice.Stop()
}

// await waits for one of two events; nil = it never happens. The error is errTooLong, or the cause of
// ctx.
func (w *admissionWait) await(ctx context.Context, event <-chan struct{}, other <-chan time.Time) error {
	select {
	case <-event: // also if the call may not wait
		return nil
	default:
	}
	for {
		select {
		case <-event:
			return nil
		case <-other:
			return nil
		case <-w.notice.C:
			if w.wait.Begun != nil {
				w.wait.Begun()
			}
		case <-w.longest.C:
			return errTooLong
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
