package mcptool

import (
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
)

const (
	progressActivity = "progress"
	progressKind     = "mcp-progress"
	// progressPause is the least time between two reports of a call. Of several messages in between, the last one is reported.
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

// progress reports the progress of a call. The handler of the server's messages only stores the latest one: it also receives the results of other
// calls, and must not wait for the log.
type progress struct {
	latest chan shown // holds at most one
	end    chan struct{}
	done   sync.WaitGroup
}

// begin returns the session for a call, nil if the server is unavailable, and starts reporting its progress.
func (s *Server) begin(report tools.Reporter, t *tool) (*mcp.ClientSession, string, *progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, "", nil
	}
	s.next++
	token := t.own + "-" + strconv.Itoa(s.next)
	p := &progress{latest: make(chan shown, 1), end: make(chan struct{})}
	s.watched[token] = p
	p.done.Go(func() {
		p.run(func(next shown) {
			next.Server, next.Tool = s.cfg.Name, t.own
			// A refused report does not fail the call.
			_ = report.Activity(progressActivity, progressKind, next)
		})
	})
	return s.session, token, p
}

// finish reports the last progress of a call.
func (s *Server) finish(token string, p *progress) {
	s.mu.Lock()
	delete(s.watched, token)
	s.mu.Unlock()
	close(p.end)
	p.done.Wait()
}

// noteProgress stores the progress of a call.
func (s *Server) noteProgress(params *mcp.ProgressNotificationParams) {
	token, ok := params.ProgressToken.(string)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.watched[token]
	if p == nil {
		return
	}
	message := s.secrets().Text(params.Message)
	next := shown{Progress: params.Progress, Total: params.Total, Message: message[:min(len(message), maxMessageLen)]}
	select {
	case <-p.latest:
	default:
	}
	p.latest <- next // there is room: s.mu is held
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
