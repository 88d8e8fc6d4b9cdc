package mcptool

import (
	"sync"
	"time"
)

// The activity that shows the progress of a call, and its limits.
const (
	progressActivity = "progress"
	progressKind     = "mcp-progress"
	// progressPause is the minimum time between two reports of a call. Of several notifications in
	// between, the last one is reported.
	progressPause = 100 * time.Millisecond
	maxMessageLen = 1 << 10 // of a progress message, in bytes
)

// shown is the content of the activity.
type shown struct {
	Server   string  `json:"server"`
	Tool     string  `json:"tool"`
	Progress float64 `json:"progress"`        // in the server's unit; grows
	Total    float64 `json:"total,omitempty"` // in the same unit; 0 = unknown
	Message  string  `json:"message,omitempty"`
}

// progress reports the progress notifications of one call. A goroutine of its own makes the
// reports, because they can block on the log. The notification handler must not block: the
// connection's other messages, including results of other calls, wait for it.
type progress struct {
	latest chan shown     // holds at most one
	end    chan struct{}  // closed by [Server.finish]
	done   sync.WaitGroup // waits for the goroutine
}

// run reports until the call ends, and then reports a progress that arrived last.
func (p *progress) run(report func(shown)) {
	for ended := false; !ended; {
		select {
		case next := <-p.latest:
			report(next)
			ended = p.rest()
		case <-p.end:
			ended = true
		}
	}
	select {
	case next := <-p.latest:
		report(next)
	default:
	}
}

// rest waits for progressPause. It returns true if the call ends earlier.
func (p *progress) rest() (ended bool) {
	timer := time.NewTimer(progressPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-p.end:
		return true
	}
}
