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

// TestAClientThatReadsIsNotCut: a large response may take as long as the client needs, also many
// times the client's patience.
func TestAClientThatReadsIsNotCut(t *testing.T) {
	t.Parallel()
	r, c := answered(2 * MinRate)
	begun := c.now
	if n, err := r.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
		t.Fatalf("%d bytes were written, %v", n, err)
	}
	if took := c.now.Sub(begun); took < 10*patience {
		t.Errorf("it took %s, which shows nothing", took)
	}
	if largest := slices.Max(c.pieces); largest > PieceBytes {
		t.Errorf("a piece has %d bytes, which have one deadline", largest)
	}
}

// TestAClientBelowTheRateIsCut: the client reads some bytes within each period of patience, but too
// few.
func TestAClientBelowTheRateIsCut(t *testing.T) {
	t.Parallel()
	r, c := answered(MinRate * 3 / 4)
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("error of the response: got %v", err)
	}
	if took := c.now.Sub(begun); took < 2*patience || took > 3*patience {
		t.Errorf("the client was cut after %s", took)
	}
}

// TestBuffersOfTheKernelDoNotCount: what the kernel buffers does not count as taken by the client.
func TestBuffersOfTheKernelDoNotCount(t *testing.T) {
	t.Parallel()
	r, c := answered(MinRate * 7 / 8)
	c.buffers = 250 << 10
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("it ends with %v", err)
	}
	if took := c.now.Sub(begun); took < 2*patience || took > 10*patience/3 {
		t.Errorf("it was cut after %s", took)
	}
}

// TestAQuietStreamIsNotSlow: the rate is measured only while data is pending for the client.
func TestAQuietStreamIsNotSlow(t *testing.T) {
	t.Parallel()
	r, c := answered(10 * MinRate)
	for range 100 {
		c.now = c.now.Add(time.Minute)
		if _, err := r.Write([]byte("a word")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAClientThatTakesNothingIsCut: later writes fail at once as well.
func TestAClientThatTakesNothingIsCut(t *testing.T) {
	t.Parallel()
	r, c := answered(0)
	begun := c.now
	if _, err := r.Write(make([]byte, 1<<20)); !errors.Is(err, ErrSlow) {
		t.Fatalf("error of the response: got %v", err)
	}
	took := c.now.Sub(begun)
	if took < patience || took > patience*5/4 {
		t.Errorf("the client was cut after %s", took)
	}
	if _, err := r.Write([]byte("more")); !errors.Is(err, ErrSlow) || c.now.Sub(begun) != took {
		t.Errorf("the next write ends with %v after %s", err, c.now.Sub(begun)-took)
	}
	if err := r.FlushError(); !errors.Is(err, ErrSlow) {
		t.Errorf("a flush ends with %v", err)
	}
}

// TestEveryAnswerHasADeadline: the deadline also covers the bytes that net/http writes before and
// after the handler.
func TestEveryAnswerHasADeadline(t *testing.T) {
	t.Parallel()
	c := &client{ResponseWriter: httptest.NewRecorder(), rate: MinRate}
	before := time.Now()
	Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if len(c.deadlines) != 1 {
			t.Errorf("the handler finds the deadlines %v", c.deadlines)
		}
	}), patience).ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/", nil))
	if len(c.deadlines) != 2 || c.deadlines[0].Before(before.Add(patience)) || c.deadlines[1].Before(c.deadlines[0]) {
		t.Errorf("the connection was given the deadlines %v", c.deadlines)
	}
}

// TestWriterHoldsNoCopyOfALargeEvent: a large event is sent at once and in order.
func TestWriterHoldsNoCopyOfALargeEvent(t *testing.T) {
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
			t.Errorf("the writer holds %d bytes", cap(*w.buf))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := recorder.Body.String(); got != "before "+large+" after" {
		t.Errorf("the client is sent %d bytes", len(got))
	}
}
