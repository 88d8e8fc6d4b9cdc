package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a body that sends bytes at times, until its request ends.
type slow struct {
	ctx   context.Context
	pause time.Duration
	left  int
}

func (s *slow) Read(p []byte) (int, error) {
	pause := s.pause
	if s.left--; s.left < 0 {
		pause = time.Hour
	}
	select {
	case <-time.After(pause):
		return copy(p, "."), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slow) Close() error { return nil }

// TestSilenceEndsConnection: a connection lives while bytes arrive, however slowly, and no longer.
func TestSilenceEndsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newConnection(t.Context(), time.Minute)
		defer c.close()
		begun := time.Now()
		c.adopt(&http.Response{Body: &slow{ctx: c.ctx, pause: 59 * time.Second, left: 10}})
		text, err := io.ReadAll(c)
		if took := time.Since(begun); len(text) != 10 || !errors.Is(err, errIdle) || took != 10*59*time.Second+time.Minute {
			t.Errorf("got %d pieces in %s, %v, want 10 and errIdle", len(text), took, err)
		}
	})
}
