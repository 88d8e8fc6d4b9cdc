package silence

import (
	"sync"
	"time"

	"github.com/perdure/perdure/stream"
)

// longestSilence bounds the pause between two looks at a silent run, which doubles. silentRuns
// bounds how many runs are remembered.
const (
	longestSilence = time.Minute
	silentRuns     = 4096
)

// silences knows when a node may look at a run again, whatever the number of its readers.
type silences struct {
	first time.Duration

	mu   sync.Mutex
	runs map[stream.Run]look
}

// look is when a silent run was first seen, and when it is looked at next.
type look struct {
	first time.Time
	next  time.Time
	pause time.Duration
}

// due reports whether to look at a run now, and how long its readers have waited for a run that has
// not begun.
func (s *silences) due(run stream.Run, now time.Time) (waited time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.runs[run]
	if now.Before(l.next) {
		return 0, false
	}
	if len(s.runs) >= silentRuns {
		clear(s.runs)
	}
	if l.first.IsZero() {
		l.first = now.Add(-s.first)
	}
	l.pause = min(max(2*l.pause, s.first), longestSilence)
	l.next = now.Add(l.pause)
	s.runs[run] = l
	return now.Sub(l.first), true
}
