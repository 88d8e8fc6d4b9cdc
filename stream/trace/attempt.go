package trace

import (
	"time"

	"github.com/perdure/perdure/stream"
)

// attempt is an attempt of a unit.
type attempt struct {
	Attempt

	writer string
	// records have the events of the attempt, for its withdrawn content; bytes is their size.
	records []*stream.Record
	bytes   int
	isCut   bool // records lacks some
}

// endWait ends the wait of the attempt, if there is one.
func (a *attempt) endWait(at time.Time) {
	if a.Wait == nil || a.Wait.EndedAt != nil {
		return
	}
	end := milliseconds(at)
	a.Wait = &AdmissionWait{StartedAt: a.Wait.StartedAt, EndedAt: &end} // copied, because an exported span refers to it
}

// maxKept bounds the records of an attempt that are kept, in bytes.
const maxKept = 1 << 20
