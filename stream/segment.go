package stream

import (
	"strconv"
	"strings"
)

// SegmentMark stands in no id of a client's: the api refuses those.
const SegmentMark = "\x00segment\x00"

// Segment is the n-th part of a run, from 1. Some clients answer the questions of a run under its own id
// (CopilotKit does): for the log each answer is a run of its own, and the client is shown one id.
func (r Run) Segment(n int) Run {
	if n > 1 {
		r.ID = r.Shown() + SegmentMark + strconv.Itoa(n)
	}
	return r
}

// Shown is the run's id as its client knows it.
func (r Run) Shown() string { return ShownRunID(r.ID) }

// ShownRunID is Run.Shown of a run with this id.
func ShownRunID(id string) string {
	shown, _, _ := strings.Cut(id, SegmentMark)
	return shown
}
