package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
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

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOver returns a client without retries whose requests are answered by f.
func clientOver(t *testing.T, f transport) *Client {
	t.Helper()
	c, err := New(Config{URL: "http://server", HTTP: &http.Client{Transport: f}, RetryWindow: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPauseOfReaderIsNoSilence: the time in which a caller uses what it has read does not end the connection.
func TestPauseOfReaderIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientOver(t, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: &slow{ctx: r.Context(), pause: time.Second, left: 9}}, nil
		})
		file, err := c.OpenFile(t.Context(), "file_a")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // it was read
		for n := range 3 {
			time.Sleep(time.Hour) //nolint:forbidigo // because the bubble has a clock of its own
			if _, err := io.ReadFull(file, make([]byte, 3)); err != nil {
				t.Fatalf("read after pause %d: %v, want the bytes", n+1, err)
			}
		}
	})
}

// TestSilenceEndsUpload: an upload lasts while the server takes bytes, or the file has none yet. It ends when
// the server has taken all bytes and does not answer.
func TestSilenceEndsUpload(t *testing.T) {
	t.Parallel()
	const pause = 119 * time.Second
	takeSlowly := func(r *http.Request) (*http.Response, error) {
		if r.ContentLength == 0 {
			return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Location": {"/v1/uploads/upload_a"}}, Body: http.NoBody}, nil
		}
		for err := error(nil); err == nil; {
			time.Sleep(pause) //nolint:forbidigo // because the bubble has a clock of its own
			_, err = io.CopyN(io.Discard, r.Body, 5<<20)
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	for name, tt := range map[string]struct {
		file func(context.Context) io.Reader
		size int64
		want time.Duration
	}{
		"small": {func(context.Context) io.Reader { return strings.NewReader("content") }, 7, pause + uploadTimeout},
		"large": {func(context.Context) io.Reader { return bytes.NewReader(make([]byte, 9<<20)) }, 9 << 20, 2*pause + uploadTimeout},
		"slow":  {func(ctx context.Context) io.Reader { return io.LimitReader(&slow{ctx: ctx, pause: time.Hour}, 3) }, 3, pause + 3*time.Hour + uploadTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, err := clientOver(t, takeSlowly).UploadFile(t.Context(), Upload{Body: tt.file(t.Context()), Size: tt.size})
				if took := time.Since(begun); !errors.Is(err, errIdle) || took != tt.want {
					t.Errorf("got %v after %s, want errIdle after %s", err, took, tt.want)
				}
			})
		})
	}
}
