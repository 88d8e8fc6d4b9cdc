package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/stream"
)

// History groups the audit of a thread by approval, in the order in which they were asked for.
func History(ctx context.Context, l *stream.Log, t stream.Thread) ([]*Past, error) {
	var all []*Past
	known := map[string]*Past{}
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
			p = &Past{Status: StatusOpen}
			known[e.Event.Approval.ID] = p
			all = append(all, p)
		}
		p.add(&e.Event)
	}
	return all, nil
}

// ByID finds an approval in a history; nil = it is not there.
func ByID(history []*Past, id string) *Past {
	if i := slices.IndexFunc(history, func(p *Past) bool { return p.ID == id }); i >= 0 {
		return history[i]
	}
	return nil
}

// Past is what an approval was and what became of it.
type Past struct {
	Approval
	Status Status `json:"status"`
	// Events are all that happened, in order.
	Events []Happened `json:"events"`
}

// Happened is one thing that happened.
type Happened struct {
	Type EventType `json:"type"`
	At   time.Time `json:"at"`
	// Decisions are the votes and decisions that it added.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Status is what became of an approval.
type Status string

// What may have become of it.
const (
	StatusOpen    Status = "open"
	StatusDecided Status = "decided"
	StatusExpired Status = "expired"
)

func (p *Past) add(e *Event) {
	args, before := p.Args, p.Decisions
	if p.Approval = e.Approval; p.Args == nil {
		p.Args = args
	}
	var added []Decision
	for _, d := range e.Approval.Decisions {
		if !slices.ContainsFunc(before, func(b Decision) bool { return b.Digest == d.Digest && b.Decision == d.Decision }) {
			added = append(added, d)
		}
	}
	p.Events = append(p.Events, Happened{Type: e.Type, At: e.At, Decisions: added})
	switch e.Type {
	case Decided:
		p.Status = StatusDecided
	case Expired:
		p.Status = StatusExpired
	}
}
