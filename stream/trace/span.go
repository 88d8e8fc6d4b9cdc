package trace

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/stream"
)

// begin adds a span that begins with a record.
func (f *Fold) begin(rec *stream.Record, at time.Time, parent *node, kind Kind, name string) *node {
	n := &node{parent: parent, firstSeq: rec.Seq}
	n.span = Span{Kind: kind, Name: name, Status: StatusRunning, StartedAt: milliseconds(at)}
	if f.lastIDSeq != rec.Seq {
		f.lastIDSeq, f.lastIDIndex = rec.Seq, 0
	}
	n.span.ID = fmt.Sprintf("%x", rec.Seq)
	if f.lastIDIndex > 0 {
		n.span.ID = fmt.Sprintf("%x.%d", rec.Seq, f.lastIDIndex)
	}
	f.lastIDIndex++
	if parent != nil {
		n.span.ParentID, parent.lastChild = parent.span.ID, n
	}
	if len(f.nodes) >= MaxSpans {
		f.run.Truncated = true
	} else {
		n.isListed = true
		f.nodes = append(f.nodes, n)
	}
	f.touch(n, rec)
	return n
}

// touch notes that a record belongs to a span, and that the span has changed.
func (f *Fold) touch(n *node, rec *stream.Record) {
	n.lastSeq = max(n.lastSeq, rec.Seq)
	f.change(n)
}

// change notes that a span has changed.
func (f *Fold) change(n *node) {
	if n.isListed && !n.isChanged {
		n.isChanged = true
		f.changed = append(f.changed, n)
	}
}

// end ends a span, unless it has ended.
func (f *Fold) end(n *node, at time.Time, status Status) {
	if n == nil || n.span.EndedAt != nil {
		return
	}
	at = milliseconds(at)
	if at.Before(n.span.StartedAt) {
		at = n.span.StartedAt
	}
	n.span.Status, n.span.EndedAt, n.span.Retry = status, &at, nil
	for p := n.parent; p != nil; p = p.parent {
		if p.lastEnd.Before(at) {
			p.lastEnd = at
		}
	}
	f.change(n)
}

// fail ends a span with an error, unless it has ended.
func (f *Fold) fail(n *node, at time.Time, err *Error) {
	if n != nil && n.span.EndedAt == nil {
		n.span.Error = err
		f.end(n, at, StatusFailed)
	}
}

// reopen lets a span that waited, or that has ended, continue.
func (f *Fold) reopen(n *node) {
	n.span.Status, n.span.EndedAt, n.span.Error = StatusRunning, nil, nil
	f.change(n)
}

// export returns a span as clients get it.
func (f *Fold) export(n *node) Span {
	s := n.span
	first, last := f.log.CursorAt(n.firstSeq), f.log.CursorAt(n.lastSeq)
	last.Index = stream.MaxIndex
	s.FirstCursor, s.LastCursor = first.String(), last.String()
	if len(n.attempts) > 1 || len(n.attempts) == 1 && (n.attempts[0].Status == StatusFailed || n.attempts[0].Wait != nil) {
		s.Attempts = make([]Attempt, 0, len(n.attempts))
		for _, a := range n.attempts {
			s.Attempts = append(s.Attempts, a.Attempt)
		}
	}
	return s
}
