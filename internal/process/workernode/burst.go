package workernode

import (
	"sync"
	"time"
)

// burst reports errors that may come in large numbers, such as one for each event during an outage: the
// first one of a cause at once, and then, once per interval, how many have followed. It is safe for
// concurrent use.
type burst struct {
	// report is told of an error, and of the number of errors with its cause that it stands for.
	report func(err error, count int)

	mu       sync.Mutex
	causes   map[string]*cause // that were reported in the last interval
	isClosed bool
}

// cause is what a burst knows of a cause.
type cause struct {
	last  error // that was not reported
	count int   // errors that were not reported
	timer *time.Timer
}

const (
	// burstInterval is the time between two reports of a cause.
	burstInterval = time.Second
	// maxCauses bounds the causes of a burst. Further ones count as one cause.
	maxCauses = 32
)

// newBurst returns a burst. The caller calls close.
func newBurst(report func(err error, count int)) *burst {
	return &burst{report: report, causes: map[string]*cause{}}
}

// add reports an error, now or with the following ones of its cause.
func (b *burst) add(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := causeOf(err)
	if b.causes[key] == nil && len(b.causes) >= maxCauses {
		key = ""
	}
	if c := b.causes[key]; c != nil {
		c.last, c.count = err, c.count+1
		return
	}
	b.report(err, 1)
	if !b.isClosed {
		b.causes[key] = &cause{timer: time.AfterFunc(burstInterval, func() { b.flush(key) })}
	}
}

// flush reports the errors of a cause that have followed, or forgets the cause if there are none.
func (b *burst) flush(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.causes[key]
	switch {
	case c == nil: // closed meanwhile
	case c.count == 0:
		delete(b.causes, key)
	default:
		b.report(c.last, c.count)
		c.last, c.count = nil, 0
		c.timer.Reset(burstInterval)
	}
}

// close reports what was not reported. Further errors are reported at once.
func (b *burst) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isClosed = true
	for key, c := range b.causes {
		c.timer.Stop()
		if c.count > 0 {
			b.report(c.last, c.count)
		}
		delete(b.causes, key)
	}
}

// causeOf returns the text of the innermost error. The texts of those around it may name an event or a
// thread.
func causeOf(err error) string {
	for {
		switch wrapping := err.(type) { //nolint:errorlint // because it goes through all errors
		case interface{ Unwrap() error }:
			if wrapping.Unwrap() == nil {
				return err.Error()
			}
			err = wrapping.Unwrap()
		case interface{ Unwrap() []error }: // the last one is the most precise
			all := wrapping.Unwrap()
			if len(all) == 0 {
				return err.Error()
			}
			err = all[len(all)-1]
		default:
			return err.Error()
		}
	}
}
