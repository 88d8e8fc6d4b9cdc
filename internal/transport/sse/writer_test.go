package sse_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/internal/transport/sse"
)

// client records the bytes that it receives, with times.
type client struct {
	header http.Header
	sent   bytes.Buffer
	at     []time.Duration // of each write, since begun
	begun  time.Time
	fails  error
}

// newClient returns a client that notes when it receives what.
func newClient() *client { return &client{header: http.Header{}, begun: time.Now()} }

func (c *client) Header() http.Header { return c.header }

func (c *client) WriteHeader(int) {}

func (c *client) Write(b []byte) (int, error) {
	if c.fails != nil {
		return 0, c.fails
	}
	c.at = append(c.at, time.Since(c.begun))
	return c.sent.Write(b)
}

func (c *client) FlushError() error { return c.fails }

// serve runs a handler that writes to the client as the API does.
func serve(t *testing.T, c *client, handle func(w *sse.Writer)) {
	t.Helper()
	live.Handler(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w, err := sse.NewWriter(rw)
		if err != nil {
			t.Fatal(err)
		}
		handle(w)
	}), time.Minute).ServeHTTP(c, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
}

// pass advances the clock of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// TestKeepAlive: while the writer's goroutine waits for events, the client receives something at
// least once per period.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		serve(t, c, func(w *sse.Writer) {
			stop := w.KeepAlive(15*time.Second, func(err error) { t.Error(err) })
			defer stop()
			pass(40 * time.Second) // heartbeats at 15 s and 30 s
			if err := w.Event("1", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			pass(4 * time.Second)
			if err := w.Flush(); err != nil { // 44 s; the next heartbeat is due at 59 s
				t.Fatal(err)
			}
			pass(20 * time.Second)
		})
		pass(time.Hour)
		synctest.Wait()
		want := ": heartbeat\n\n: heartbeat\n\nid: 1\ndata: {}\n\n: heartbeat\n\n"
		if c.sent.String() != want {
			t.Errorf("sent = %q, want %q", c.sent.String(), want)
		}
		if len(c.at) != 4 || c.at[1] != 30*time.Second || c.at[2] != 44*time.Second || c.at[3] != 59*time.Second {
			t.Errorf("times of the writes = %v, want 4, at 30s, 44s and 59s", c.at)
		}
	})
}

// TestKeepAliveSendsWholeFrames: a heartbeat also sends frames that were added and not flushed, and
// never splits a frame.
func TestKeepAliveSendsWholeFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		serve(t, c, func(w *sse.Writer) {
			defer w.KeepAlive(time.Second, func(err error) { t.Error(err) })()
			if err := w.Event("1", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			synctest.Wait()
		})
		if want := "id: 1\ndata: {}\n\n: heartbeat\n\n"; c.sent.String() != want {
			t.Errorf("sent = %q, want %q", c.sent.String(), want)
		}
	})
}

func TestKeepAliveReportsFailureOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		gone := errors.New("gone")
		var failures []error
		serve(t, c, func(w *sse.Writer) {
			c.fails = gone
			stop := w.KeepAlive(time.Second, func(err error) {
				failures = append(failures, err)
				w.Full() // failed may use the writer
			})
			pass(time.Minute)
			synctest.Wait()
			stop()
		})
		if len(failures) != 1 || !errors.Is(failures[0], gone) {
			t.Errorf("failures = %v, want one: %v", failures, gone)
		}
	})
}
