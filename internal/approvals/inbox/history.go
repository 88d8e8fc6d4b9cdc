package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/stream"
)

// ReadHistory reads the audit of a thread, and groups it by interrupt, in the order in which the
// interrupts were opened. It includes open interrupts.
func ReadHistory(ctx context.Context, l *stream.Log, t stream.Thread) ([]*History, error) {
	var all []*History
	known := map[string]*History{}
	for rec, err := range l.Audit(ctx, t) {
		if err != nil {
			return nil, err
		}
		var e Entry
		if err := rec.Result(ctx, &e); err != nil {
			return nil, fmt.Errorf("inbox: audit: %w", err)
		}
		p := known[e.Event.Approval.ID]
		if p == nil {
			p = &History{Status: StatusOpen}
			known[e.Event.Approval.ID] = p
			all = append(all, p)
		}
		p.add(&e.Event)
	}
	return all, nil
}

// ByID returns the interrupt with an ID; nil = the history does not have it.
func ByID(history []*History, id string) *History {
	if i := slices.IndexFunc(history, func(p *History) bool { return p.ID == id }); i >= 0 {
		return history[i]
	}
	return nil
}

// History is an interrupt with its status and its events.
type History struct {
	Approval
	Status Status `json:"status"`
	// Events are all events, in order.
	Events []PastEvent `json:"events"`
}

// PastEvent is one event in the history of an interrupt.
type PastEvent struct {
	Type EventType `json:"type"`
	At   time.Time `json:"at"`
	// Decisions are the votes and decisions that this event added.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Status is the status of an interrupt.
type Status string

// The values of Status.
const (
	StatusOpen    Status = "open"
	StatusDecided Status = "decided"
	StatusExpired Status = "expired"
)

// add adds an event. The last event has the current Approval; its arguments are those of the first
// entry, because later entries have none.
func (p *History) add(e *Event) {
	args, before := p.Args, p.Decisions
	if p.Approval = e.Approval; p.Args == nil {
		p.Args = args
	}
	// An entry has all decisions so far. Those that the entry before did not have are this event's.
	var added []Decision
	for _, d := range e.Approval.Decisions {
		if !slices.ContainsFunc(before, func(b Decision) bool { return b.Digest == d.Digest && b.Decision == d.Decision }) {
			added = append(added, d)
		}
	}
	p.Events = append(p.Events, PastEvent{Type: e.Type, At: e.At, Decisions: added})
	switch e.Type {
	case Decided:
		p.Status = StatusDecided
	case Expired:
		p.Status = StatusExpired
	}
}
