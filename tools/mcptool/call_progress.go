package mcptool

import (
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
)

// begin prepares a call: it returns the session, a progress token, and a progress whose goroutine
// reports to report. The session is nil if the server is unavailable or the Server is stopped.
// Otherwise the caller must call finish.
func (s *Server) begin(report tools.Reporter, t *tool) (*mcp.ClientSession, string, *progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// After Stop, run needs a moment to detach the session. A call that begins in between is not
	// made.
	if s.session == nil || s.life.Err() != nil {
		return nil, "", nil
	}
	s.next++
	token := t.remoteName + "-" + strconv.Itoa(s.next)
	p := &progress{latest: make(chan shown, 1), end: make(chan struct{})}
	s.watched[token] = p
	p.done.Go(func() {
		p.run(func(next shown) {
			next.Server, next.Tool = s.cfg.Name, t.remoteName
			// A refused report does not fail the call.
			_ = report.Activity(progressActivity, progressKind, next)
		})
	})
	return s.session, token, p
}

// finish ends the progress of a call. It blocks until the last progress has been reported.
func (s *Server) finish(token string, p *progress) {
	s.mu.Lock()
	delete(s.watched, token)
	if len(s.watched) == 0 {
		s.renewal.callsEnded()
	}
	s.mu.Unlock()
	close(p.end)
	p.done.Wait()
}

// noteProgress stores the progress of a call. It ignores unknown tokens, since a notification can
// arrive after the end of its call.
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
	next := shown{Progress: params.Progress, Total: params.Total, Message: strings.ToValidUTF8(message[:min(len(message), maxMessageLen)], "")}
	select {
	// Only the latest progress counts: it replaces one that is not reported yet.
	case <-p.latest:
	default:
	}
	p.latest <- next // does not block: only noteProgress sends, and holds s.mu
}
