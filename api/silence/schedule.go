package silence

import (
	"sync"
	"time"

	"github.com/perdure/perdure/stream"
)

// maxPause bounds the pause between two checks of a silent run. maxSilentRuns bounds how many
// runs are remembered: beyond it all are forgotten, and some are checked earlier than due.
const (
	maxPause      = time.Minute
	maxSilentRuns = 4096
)

// schedule remembers when a node may check each silent run again. So the load on Temporal does not
// grow with the number of a run's readers. It is safe for concurrent use.
type schedule struct {
	first time.Duration // the shortest pause, and the silence before the first check

	mu   sync.Mutex
	runs map[stream.Run]runCheck
}

// runCheck is the schedule of checks of one silent run.
type runCheck struct {
	first time.Time     // when the run became silent, as far as this process knows
	next  time.Time     // not checked before
	pause time.Duration // between the last check and the next one
}

// due reports whether to check a run now. If so, the caller must check it: the next check is due
// only after twice the pause. waited is how long readers have waited for the run's first record, as
// far as this process knows.
func (s *schedule) due(run stream.Run, now time.Time) (waited time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.runs[run]
	if now.Before(c.next) {
		return 0, false
	}
	if len(s.runs) >= maxSilentRuns {
		clear(s.runs)
	}
	// The first reader has waited for one silence before it called.
	if c.first.IsZero() {
		c.first = now.Add(-s.first)
	}
	c.pause = min(max(2*c.pause, s.first), maxPause)
	c.next = now.Add(c.pause)
	s.runs[run] = c
	return now.Sub(c.first), true
}
