package mcptool

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/perdure/perdure/internal/secrets"
)

// Limits of the log: bytes of a line, and lines that are logged without delay.
const (
	maxLine   = 2 << 10
	lineBurst = 50
)

// stderr is an [io.Writer] that logs the standard error of a program. It logs lineBurst lines, and
// then one line per second; it counts the others. Lines are truncated to maxLine bytes. It is safe
// for concurrent use.
type stderr struct {
	logger   *slog.Logger
	redactor secrets.Redactor
	limit    *rate.Limiter

	mu      sync.Mutex // guards the fields below
	line    []byte     // incomplete line, at most maxLine+1 bytes
	skipped int        // lines since the last logged one
}

// newStderr returns a stderr that logs to logger and hides the secrets of redactor.
func newStderr(logger *slog.Logger, redactor secrets.Redactor) *stderr {
	return &stderr{logger: logger, redactor: redactor, limit: rate.NewLimiter(rate.Every(time.Second), lineBurst)}
}

// Write implements [io.Writer]. It never fails, so the program does not depend on the log.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if room := maxLine + 1 - len(s.line); room > 0 { // one byte more marks a line as too long
			s.line = append(s.line, line[:min(len(line), room)]...)
		}
		if !ended {
			return written, nil
		}
		s.log()
		p = rest
	}
}

// flush logs an incomplete last line.
func (s *stderr) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		s.log()
	}
}

// log logs the line, or counts it as skipped. The caller holds mu.
func (s *stderr) log() {
	text := s.line
	s.line = s.line[:0]
	if !s.limit.Allow() {
		s.skipped++
		return
	}
	var attributes []any
	if s.skipped > 0 {
		attributes = append(attributes, "skipped", s.skipped)
		s.skipped = 0
	}
	line := s.redactor.Text(string(text))
	if len(line) > maxLine {
		line = line[:maxLine] + "…"
	}
	s.logger.InfoContext(context.Background(), "output of MCP server", append(attributes, "text", line)...)
}
