package live

import (
	"errors"
	"time"
)

// ErrSlow reports a client that takes what it is sent too slowly. The connection cannot be used any
// more.
var ErrSlow = errors.New("live: the client does not read")

// MinRate is the least that a client takes while something waits for it, in bytes per second,
// averaged over twice the patience.
const MinRate = 1 << 10

// PieceBytes is how much is written under one deadline. A client that takes MinRate takes a piece
// within 16 s.
const PieceBytes = 16 << 10

// Meter judges how fast a client takes what it is sent. Only the time that a writer waits for the
// client counts, so a quiet stream is not slow. It is not safe for concurrent use.
type Meter struct {
	window time.Duration
	waited time.Duration // in this window
	taken  int           // bytes, in this window
}

// NewMeter returns a meter whose window is twice the patience.
func NewMeter(patience time.Duration) Meter { return Meter{window: 2 * patience} }

// Slow counts a write of some bytes for which the writer waited, and reports whether the client
// took less than MinRate over the window that ends with it.
func (m *Meter) Slow(bytes int, waited time.Duration) bool {
	m.taken += bytes
	m.waited += waited
	if m.waited < m.window {
		return false
	}
	slow := float64(m.taken) < MinRate*m.waited.Seconds()
	m.taken, m.waited = 0, 0
	return slow
}
