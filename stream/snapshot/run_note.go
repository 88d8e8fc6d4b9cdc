package snapshot

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// RunNote is what a snapshot keeps of one of the thread's runs. A thread keeps the notes of all its
// runs.
type RunNote struct {
	// ID is the run's ID in the log: with the mark of its segment, if it is not the first one.
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Revision is that of the agent.
	Revision string `json:"revision,omitempty"`
	// Continues is the run that this one continues, without an input of its own; "" = none.
	Continues string `json:"continues,omitempty"`
	// Event is the event that started the run; nil = none did.
	Event *stream.TriggerEvent `json:"event,omitempty"`
	Began time.Time            `json:"began"`
	// Ended is zero while the run continues.
	Ended time.Time `json:"ended,omitzero"`
	// Outcome is success, interrupt, cancelled or, with a code, error; empty while the run continues.
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	// Superseded tells which messages the run's input took out of the conversation; nil = none.
	Superseded *Superseded `json:"superseded,omitempty"`
	// Cancel is the request that cancelled the run; nil = the run was not cancelled, or without a
	// request.
	Cancel *stream.Cancel `json:"cancel,omitempty"`
	// Usage is the usage that the run's last event reports, each model once; Estimated is the part
	// of it that is estimated, nil = none.
	Usage     []agui.TokenUsage `json:"usage,omitempty"`
	Estimated *EstimatedUsage   `json:"estimated,omitempty"`
}

// Segment returns the number of the segment of its run ID, from 1.
func (r RunNote) Segment() int {
	_, number, marked := strings.Cut(r.ID, stream.SegmentMark)
	if !marked {
		return 1
	}
	segment, _ := strconv.Atoi(number) // the server made it
	return segment
}

// OutcomeError is the outcome of a run that ended with RUN_ERROR; the others are AG-UI's.
const OutcomeError = "error"

// Superseded tells which messages the input of a run removed from the conversation: by an edit, a
// regeneration, or by replacing the conversation. The log keeps their records, and
// Store.SupersededBy returns them.
type Superseded struct {
	// Before is the sequence of the thread's last record before the run, At that of the run's first
	// record.
	Before uint64 `json:"before"`
	At     uint64 `json:"at"`
	// After is the ID of the message that they followed; "" = they began the conversation.
	After string `json:"after,omitempty"`
	// Messages is how many they are.
	Messages int `json:"messages"`
}
