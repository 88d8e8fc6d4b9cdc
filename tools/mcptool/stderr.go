package mcptool

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/perdure/perdure/tools/internal/secrets"
)

const (
	maxLine   = 2 << 10
	lineBurst = 50
)

// stderr logs the standard error of a program: lines of at most maxLine bytes, lineBurst of them
// and then one per second.
type stderr struct {
	logger   *slog.Logger
	redactor secrets.Redactor
	limit    *rate.Limiter

	mu      sync.Mutex
	line    []byte
	skipped int
}

func newStderr(logger *slog.Logger, redactor secrets.Redactor) *stderr {
	return &stderr{logger: logger, redactor: redactor, limit: rate.NewLimiter(rate.Every(time.Second), lineBurst)}
}

// Write implements [io.Writer]. It never fails, because the program must not depend on the log.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if room := maxLine + 1 - len(s.line); room > 0 {
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

func (s *stderr) log() {
	text := s.line
	s.line = s.line[:0]
	if !s.limit.Allow() {
		s.skipped++
		return
	}
	var more []any
	if s.skipped > 0 {
		more = append(more, "skipped", s.skipped)
		s.skipped = 0
	}
	shown := s.redactor.Text(string(text))
	if len(shown) > maxLine {
		shown = shown[:maxLine] + "…"
	}
	s.logger.InfoContext(context.Background(), "MCP server says", append(more, "text", shown)...)
}
