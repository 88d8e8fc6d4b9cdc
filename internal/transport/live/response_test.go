package live

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const patience = 30 * time.Second

// client is an http.ResponseWriter whose client reads bytes at a rate, with a simulated clock.
type client struct {
	http.ResponseWriter
	now       time.Time
	rate      int       // bytes per second; 0 = it reads nothing
	buffers   int       // bytes that the kernel takes at once before that
	deadline  time.Time // of the connection
	deadlines []time.Time
	pieces    []int
}

func (c *client) SetWriteDeadline(at time.Time) error {
	c.deadline, c.deadlines = at, append(c.deadlines, at)
	return nil
}

func (c *client) Flush() {}

func (c *client) Write(p []byte) (int, error) {
	if c.rate == 0 {
		c.now = c.deadline
		return 0, os.ErrDeadlineExceeded
	}
	c.pieces = append(c.pieces, len(p))
	buffered := min(len(p), c.buffers)
	c.buffers -= buffered
	c.now = c.now.Add(time.Duration(len(p)-buffered) * time.Second / time.Duration(c.rate))
	if c.now.After(c.deadline) {
		c.now = c.deadline
		return 0, os.ErrDeadlineExceeded
	}
	return c.ResponseWriter.Write(p)
}

// answered returns a response to a client that reads the given number of bytes per second.
func answered(rate int) (*response, *client) {
	c := &client{ResponseWriter: httptest.NewRecorder(), now: time.Now(), rate: rate}
	r := newResponse(c, patience)
	r.now = func() time.Time { return c.now }
	return r, c
}

// TestReadingClientStaysConnected: a large response may take as long as the client needs, also many
// times the client's patience.
func TestReadingClientStaysConnected(t *testing.T) {
	t.Parallel()
	r, c := answered(2 * MinRate)
	begun := c.now
	if n, err := r.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
		t.Fatalf("Write = %d, %v, want %d bytes", n, err, 1<<20)
	}
	if took := c.now.Sub(begun); took < 10*patience {
		t.Errorf("write took %s, want at least %s", took, 10*patience)
	}
	if largest := slices.Max(c.pieces); largest > PieceBytes {
		t.Errorf("largest piece = %d bytes, want at most %d", largest, PieceBytes)
	}
}

// TestSlowClientIsDisconnected: the client reads some bytes within each period of patience, but too
// few.
func TestSlowClientIsDisconnected(t *testing.T) {
	t.Parallel()
	r, c := answered(MinRate * 3 / 4)
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("Write = %v, want %v", err, ErrSlow)
	}
	if took := c.now.Sub(begun); took < 2*patience || took > 3*patience {
		t.Errorf("client was disconnected after %s, want 2 to 3 times %s", took, patience)
	}
}

// TestKernelBuffersDoNotCount: what the kernel buffers does not count as taken by the client.
func TestKernelBuffersDoNotCount(t *testing.T) {
	t.Parallel()
	r, c := answered(MinRate * 7 / 8)
	c.buffers = 250 << 10
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("Write = %v, want %v", err, ErrSlow)
	}
	if took := c.now.Sub(begun); took < 2*patience || took > 10*patience/3 {
		t.Errorf("client was disconnected after %s, want 2 to 3.3 times %s", took, patience)
	}
}

// TestQuietStreamIsNotSlow: the rate is measured only while data is pending for the client.
func TestQuietStreamIsNotSlow(t *testing.T) {
	t.Parallel()
	r, c := answered(10 * MinRate)
	for range 100 {
		c.now = c.now.Add(time.Minute)
		if _, err := r.Write([]byte("a word")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClientThatReadsNothingIsDisconnected: later writes fail at once as well.
func TestClientThatReadsNothingIsDisconnected(t *testing.T) {
	t.Parallel()
	r, c := answered(0)
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("Write = %v, want %v", err, ErrSlow)
	}
	took := c.now.Sub(begun)
	if took < patience || took > patience*5/4 {
		t.Errorf("client was disconnected after %s, want 1 to 1.25 times %s", took, patience)
	}
	if _, err := r.Write([]byte("more")); !errors.Is(err, ErrSlow) || c.now.Sub(begun) != took {
		t.Errorf("next Write = %v after %s, want ErrSlow at once", err, c.now.Sub(begun)-took)
	}
	if err := r.FlushError(); !errors.Is(err, ErrSlow) {
		t.Errorf("FlushError = %v, want %v", err, ErrSlow)
	}
}

// TestEveryAnswerHasDeadline: the deadline also covers the bytes that net/http writes before and
// after the handler.
func TestEveryAnswerHasDeadline(t *testing.T) {
	t.Parallel()
	c := &client{ResponseWriter: httptest.NewRecorder(), rate: MinRate}
	before := time.Now()
	Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if len(c.deadlines) != 1 {
			t.Errorf("deadlines in the handler = %v, want one", c.deadlines)
		}
	}), patience).ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/", nil))
	if len(c.deadlines) != 2 || c.deadlines[0].Before(before.Add(patience)) || c.deadlines[1].Before(c.deadlines[0]) {
		t.Errorf("deadlines of the connection = %v, want two in their order", c.deadlines)
	}
}

// TestWriterKeepsNoLargeBuffer: a large event is sent at once and in order.
func TestWriterKeepsNoLargeBuffer(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	w, err := NewWriter(newResponse(&client{ResponseWriter: recorder, rate: 1 << 30, now: time.Now()}, patience), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	for _, p := range []string{"before ", large, " after"} {
		if err := w.Append([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if w.buf != nil && cap(*w.buf) > keptBytes {
			t.Errorf("bytes kept by the writer = %d, want at most %d", cap(*w.buf), keptBytes)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := recorder.Body.String(); got != "before "+large+" after" {
		t.Errorf("bytes sent = %d, want %d", len(got), len("before "+large+" after"))
	}
}
