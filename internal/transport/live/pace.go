package live

import (
	"errors"
	"time"
)

// ErrSlow reports a client that reads too slowly. Its connection cannot be used any more, because
// part of a write may be sent.
var ErrSlow = errors.New("live: the client does not read")

// MinRate is the lowest rate at which a client may take data while data waits for it, in bytes per
// second. It is averaged over twice the write timeout.
const MinRate = 1 << 10

// PieceBytes is how much is written under one deadline. A client with MinRate takes a piece within
// 16 s.
const PieceBytes = 16 << 10

// Meter measures how fast a client takes data. Only the time in which a writer waits for the client
// counts, so an idle stream is not slow. The meter begins after the first write that waits: what
// the kernel has buffered by then was not taken by the client. It is not safe for concurrent use.
type Meter struct {
	window  time.Duration
	started bool
	waited  time.Duration // in this window
	taken   int           // bytes, in this window
}

// minWait is the time from which a write counts as one that waits for the client. The kernel
// buffers a piece within microseconds.
const minWait = 10 * time.Millisecond

// NewMeter returns a meter whose window is twice the write timeout.
func NewMeter(writeTimeout time.Duration) Meter { return Meter{window: 2 * writeTimeout} }

// Slow records a write of some bytes for which the writer waited. At the end of each window it
// reports whether the client took less than MinRate in the window; within a window it returns
// false.
func (m *Meter) Slow(bytes int, waited time.Duration) bool {
	if !m.started {
		m.started = waited >= minWait
		return false
	}
	m.taken += bytes
	m.waited += waited
	if m.waited < m.window {
		return false
	}
	slow := float64(m.taken) < MinRate*m.waited.Seconds()
	m.taken, m.waited = 0, 0
	return slow
}
