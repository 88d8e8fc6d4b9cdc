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
	// Begun is called when the call has waited for longer than a moment; nil = nothing. It is called
	// at most once, before Admit returns.
	Begun func()
}

// errTooLong is the error of a call that has waited for the longest time.
var errTooLong = errors.New("admission: the call has waited for too long")

// patience is the wait of one call, over several events. One goroutine uses it.
type patience struct {
	wait            Wait
	longest, notice *time.Timer
}

// newPatience begins a wait.
func newPatience(wait Wait) *patience {
	return &patience{wait: wait, longest: time.NewTimer(wait.Longest), notice: time.NewTimer(noticeAfter)}
}

// stop releases the timers.
func (p *patience) stop() {
	p.longest.Stop()
	p.notice.Stop()
}

// await waits for one of two events; nil = it never happens. The error is errTooLong, or the cause of
// ctx.
func (p *patience) await(ctx context.Context, event <-chan struct{}, other <-chan time.Time) error {
	select {
	case <-event: // also without any patience
		return nil
	default:
	}
	for {
		select {
		case <-event:
			return nil
		case <-other:
			return nil
		case <-p.notice.C:
			if p.wait.Begun != nil {
				p.wait.Begun()
			}
		case <-p.longest.C:
			return errTooLong
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
