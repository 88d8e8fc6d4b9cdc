package live

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Handler bounds how long a client may take for any answer of next: it is cut with ErrSlow when it
// takes no bytes for as long as patience, or up to an eighth longer, or less than MinRate. A large
// answer to a client that reads may take as long as it needs. What net/http sends by itself after
// next returns has patience too.
func Handler(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := newResponse(w, patience)
		to.renew(time.Now()) // a connection that was used before has the deadline of the answer before
		next.ServeHTTP(to, r)
		if !to.hijacked {
			to.deadline = time.Time{}
			to.renew(time.Now())
		}
	})
}

// response is the http.ResponseWriter of Handler. It is used by one goroutine.
type response struct {
	http.ResponseWriter
	rc       *http.ResponseController
	now      func() time.Time
	patience time.Duration
	meter    Meter
	deadline time.Time // of the connection
	hijacked bool
	err      error // of the first write that failed: no later one is tried
}

func newResponse(w http.ResponseWriter, patience time.Duration) *response {
	return &response{ResponseWriter: w, rc: http.NewResponseController(w), now: time.Now, patience: patience, meter: NewMeter(patience)}
}

// Write writes piece by piece, so that each has its own deadline.
func (w *response) Write(p []byte) (written int, err error) {
	for first := true; first || written < len(p); first = false {
		piece := p[written:min(len(p), written+PieceBytes)]
		n := 0
		err := w.timed(len(piece), func() (err error) { n, err = w.ResponseWriter.Write(piece); return err })
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// Flush is FlushError for callers that cannot take an error: the next write returns it.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what net/http has buffered.
func (w *response) FlushError() error { return w.timed(0, w.rc.Flush) }

// Hijack hands the connection over, whose deadlines are the caller's from then on.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return w.rc.Hijack()
}

// Unwrap lets an http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// timed writes with a deadline.
func (w *response) timed(bytes int, write func() error) error {
	if w.err != nil {
		return w.err
	}
	begun := w.now()
	w.renew(begun)
	err := write()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.err = fmt.Errorf("%w: it took no bytes for %s", ErrSlow, w.patience)
	case err != nil:
		w.err = fmt.Errorf("live: %w", err)
	case w.meter.Slow(bytes, w.now().Sub(begun)):
		w.err = fmt.Errorf("%w: it takes less than %d bytes per second", ErrSlow, MinRate)
	}
	return w.err
}

// renew gives the client at least its patience. The deadline is not moved for every event: that
// would be a seventh of what an event costs.
func (w *response) renew(now time.Time) {
	if w.deadline.Sub(now) >= w.patience {
		return
	}
	w.deadline = now.Add(w.patience + w.patience/8)
	_ = w.rc.SetWriteDeadline(w.deadline) // a recorder has none; a closed connection fails with the write
}

// responseOf returns the response that w wraps; nil = the request was not served by Handler.
func responseOf(w http.ResponseWriter) *response {
	for {
		if found, ok := w.(*response); ok {
			return found
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = wrapper.Unwrap()
	}
}
