package inbox

import (
	"context"
	"fmt"
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
			p = &Past{Status: StatusPending}
			known[e.Event.Approval.ID] = p
			all = append(all, p)
		}
		p.add(&e.Event)
	}
	return all, nil
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
}

// Status is what became of an approval.
type Status string

// What may have become of it.
const (
	StatusPending Status = "pending"
	StatusDecided Status = "decided"
	StatusExpired Status = "expired"
)

func (p *Past) add(e *Event) {
	args := p.Args
	if p.Approval = e.Approval; p.Args == nil {
		p.Args = args
	}
	p.Events = append(p.Events, Happened{Type: e.Type, At: e.At})
	switch e.Type {
	case Decided:
		p.Status = StatusDecided
	case Expired:
		p.Status = StatusExpired
	}
}
