package stream

import (
	"strconv"
	"strings"
)

// SegmentMark separates the ID that clients know from the number of a segment. No ID of a client
// has it: the API refuses such IDs.
const SegmentMark = "\x00segment\x00"

// Segment returns the n-th segment of a run, from 1: the run itself. Some clients, such as
// CopilotKit, answer the interrupts of a run with the run's own ID. In the log each answer begins a
// run of its own, a segment; the client sees one ID.
func (r Run) Segment(n int) Run {
	if n > 1 {
		r.ID = r.Shown() + SegmentMark + strconv.Itoa(n)
	}
	return r
}

// Shown returns the run's ID as its client knows it: without the segment.
func (r Run) Shown() string { return ShownRunID(r.ID) }

// ShownRunID returns the ID that clients know, for a run ID of the log.
func ShownRunID(id string) string {
	shown, _, _ := strings.Cut(id, SegmentMark)
	return shown
}
