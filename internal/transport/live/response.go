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

// Handler bounds how slowly a client may take any response of next. The client is cut with ErrSlow
// if it takes no bytes for writeTimeout (or up to an eighth longer), or less than MinRate. A large
// response to a client that reads may take any time. The final writes of net/http, after next has
// returned, have writeTimeout, too.
func Handler(next http.Handler, writeTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp := newResponse(w, writeTimeout)
		resp.renew(time.Now()) // a reused connection has the deadline of its previous response
		next.ServeHTTP(resp, r)
		if !resp.hijacked {
			resp.deadline = time.Time{}
			resp.renew(time.Now())
		}
	})
}

// response is the http.ResponseWriter of Handler. It is not safe for concurrent use.
type response struct {
	http.ResponseWriter
	rc           *http.ResponseController
	now          func() time.Time
	writeTimeout time.Duration
	meter        Meter
	deadline     time.Time // of the connection
	hijacked     bool
	err          error // the first failure of a write: later writes fail with it at once
}

// newResponse wraps the writer of one response.
func newResponse(w http.ResponseWriter, writeTimeout time.Duration) *response {
	return &response{ResponseWriter: w, rc: http.NewResponseController(w), now: time.Now, writeTimeout: writeTimeout, meter: NewMeter(writeTimeout)}
}

// Write implements [http.ResponseWriter]. It writes in pieces of PieceBytes, each with its own
// deadline.
func (r *response) Write(p []byte) (written int, err error) {
	for first := true; first || written < len(p); first = false {
		piece := p[written:min(len(p), written+PieceBytes)]
		n := 0
		err := r.timed(len(piece), func() (err error) { n, err = r.ResponseWriter.Write(piece); return err })
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// Flush implements [http.Flusher]. The next write returns its error.
func (r *response) Flush() { _ = r.FlushError() }

// FlushError sends what net/http has buffered. [http.ResponseController] calls it.
func (r *response) FlushError() error { return r.timed(0, r.rc.Flush) }

// Hijack implements [http.Hijacker]. From then on the deadlines of the connection are the caller's.
func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.hijacked = true
	return r.rc.Hijack()
}

// Unwrap gives an [http.ResponseController] access to the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// timed executes one write of some bytes with a deadline, and measures it. A failure is final for
// the response.
func (r *response) timed(bytes int, write func() error) error {
	if r.err != nil {
		return r.err
	}
	start := r.now()
	r.renew(start)
	err := write()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.err = fmt.Errorf("%w: it took no bytes for %s", ErrSlow, r.writeTimeout)
	case err != nil:
		r.err = fmt.Errorf("live: %w", err)
	case r.meter.Slow(bytes, r.now().Sub(start)):
		r.err = fmt.Errorf("%w: it takes less than %d bytes per second", ErrSlow, MinRate)
	}
	return r.err
}

// renew ensures that the deadline of the connection is at least writeTimeout away. It sets the
// deadline an eighth later than necessary, because setting it for every event would be a seventh of
// the cost of an event.
func (r *response) renew(now time.Time) {
	if r.deadline.Sub(now) >= r.writeTimeout {
		return
	}
	r.deadline = now.Add(r.writeTimeout + r.writeTimeout/8)
	_ = r.rc.SetWriteDeadline(r.deadline) // a recorder of tests has no deadline; on a closed connection the write fails
}

// responseOf returns the response that w wraps, directly or through other wrappers; nil = Handler
// does not serve the request.
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
