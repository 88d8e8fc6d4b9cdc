package mcptool

import (
	"sync"
	"time"
)

const (
	progressActivity = "progress"
	progressKind     = "mcp-progress"
	// progressPause is the least time between two reports of a call. Of several messages in
	// between, the last one is reported.
	progressPause = 100 * time.Millisecond
	maxMessageLen = 1 << 10
)

// shown is the content of the activity.
type shown struct {
	Server   string  `json:"server"`
	Tool     string  `json:"tool"`
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// progress reports the progress of a call. The handler of the server's messages only stores the
// latest one: it also receives the results of other calls, and must not wait for the log.
type progress struct {
	latest chan shown // holds at most one
	end    chan struct{}
	done   sync.WaitGroup
}

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

// rest waits for the pause between two reports, and reports whether the call ended meanwhile.
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
