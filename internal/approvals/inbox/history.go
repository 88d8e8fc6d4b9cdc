package inbox

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// ReadHistory reads the audit of a thread, and groups it by interrupt, in the order in which the
// interrupts were opened. It includes open interrupts.
func ReadHistory(ctx context.Context, l *stream.Log, t stream.Thread) ([]*History, error) {
	return groupByInterrupt(ctx, l.Audit(ctx, t))
}

// groupByInterrupt groups the entries of an audit by interrupt.
func groupByInterrupt(ctx context.Context, entries iter.Seq2[*stream.Record, error]) ([]*History, error) {
	var all []*History
	byID := map[string]*History{}
	for rec, err := range entries {
		if err != nil {
			return nil, err
		}
		var e Entry
		if err := rec.Result(ctx, &e); err != nil {
			return nil, fmt.Errorf("inbox: audit: %w", err)
		}
		h := byID[e.Event.Approval.ID]
		if h == nil {
			h = &History{Status: StatusOpen}
			byID[e.Event.Approval.ID] = h
			all = append(all, h)
		}
		h.add(&e.Event)
	}
	return all, nil
}

// AwaitDecision blocks until the audit of a thread has the decision of a proposal, and returns its
// interrupt. It fails with the cause of ctx, with stream.ErrInterrupted when the follower stops,
// and with a failure of the log.
func AwaitDecision(ctx context.Context, f *stream.Follower, proposal *stream.Record) (*History, error) {
	tail := f.TailOf(proposal)
	defer tail.Close()
	for {
		all, err := groupByInterrupt(ctx, f.Log().AuditOf(ctx, proposal))
		if err != nil {
			return nil, err
		}
		for _, h := range all {
			if h.has(proposal) {
				return h, nil
			}
		}
		if _, err := tail.Next(ctx, time.Hour); err != nil {
			return nil, err
		}
	}
}

// has reports whether the decision of a proposal is one of the interrupt's. The time is compared
// too, because an approver may return to an earlier vote.
func (h *History) has(proposal *stream.Record) bool {
	return slices.ContainsFunc(h.Decisions, func(d Decision) bool {
		return d.Digest != "" && strings.HasPrefix(proposal.Step, d.Digest) && d.At.Equal(proposal.Time)
	})
}

// ByID returns the interrupt with an ID; nil = the history does not have it.
func ByID(history []*History, id string) *History {
	if i := slices.IndexFunc(history, func(h *History) bool { return h.ID == id }); i >= 0 {
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
func (h *History) add(e *Event) {
	args, before := h.Args, h.Decisions
	if h.Approval = e.Approval; h.Args == nil {
		h.Args = args
	}
	// An entry has all decisions so far. Those that the entry before did not have are this event's.
	var added []Decision
	for _, d := range e.Approval.Decisions {
		if !slices.ContainsFunc(before, func(b Decision) bool { return b.Digest == d.Digest && b.Decision == d.Decision }) {
			added = append(added, d)
		}
	}
	h.Events = append(h.Events, PastEvent{Type: e.Type, At: e.At, Decisions: added})
	switch e.Type {
	case Decided:
		h.Status = StatusDecided
	case Expired:
		h.Status = StatusExpired
	}
}
