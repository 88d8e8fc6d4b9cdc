package trace

import (
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

// maxKept bounds the records of an attempt that are kept, in bytes.
const maxKept = 1 << 20
