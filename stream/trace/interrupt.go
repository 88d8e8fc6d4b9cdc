package trace

import (
	"context"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// beginInterrupts begins the interrupts and client tool calls of a record, except for those that a
// held run has announced before.
func (f *Fold) beginInterrupts(rec *stream.Record, interrupts []agui.Interrupt, clientCalls []string) {
	for _, i := range interrupts {
		if f.interrupts[i.ID].isOpen() {
			continue
		}
		openedAt, isQuestion := rec.Time, false
		if approval, err := stream.ApprovalSourceOf(i); err == nil && approval != nil {
			openedAt = approval.OpenedAt
		} else if question, err := stream.QuestionSourceOf(i); err == nil && question.Number > 0 {
			openedAt, isQuestion = question.OpenedAt, true
		}
		if openedAt.IsZero() || openedAt.After(rec.Time) {
			openedAt = rec.Time
		}
		n := f.beginInterrupt(rec, openedAt, stream.CallOf(i), isQuestion)
		n.span.InterruptID, n.question, n.span.Awaits = i.ID, isQuestion, awaitedBy(i)
		if n.span.Name == "" {
			n.span.Name = i.Reason
		}
		f.interrupts[i.ID] = n
	}
	for _, id := range clientCalls {
		if !f.interrupts[id].isOpen() {
			f.interrupts[id] = f.beginInterrupt(rec, rec.Time, id, false)
		}
	}
}

// awaitedBy returns the time or the event for which an interrupt waits; nil = people or the client decide it.
func awaitedBy(i agui.Interrupt) *Awaited {
	wait := stream.WaitIn(i)
	if wait == nil {
		return nil
	}
	until, _ := time.Parse(time.RFC3339, i.ExpiresAt) // zero if it is absent or invalid
	return &Awaited{Wait: *wait, Until: until}
}

// beginInterrupt begins the interrupt of a call. A question is part of the call that asks.
func (f *Fold) beginInterrupt(rec *stream.Record, at time.Time, callID string, isQuestion bool) *node {
	parent, name := f.agentOn(stream.LaneMain).callParent(), ""
	if c := f.calls[callID]; c != nil {
		name = c.name
		switch {
		case c.node != nil && isQuestion:
			parent = c.node
		case c.agent != nil:
			parent = c.agent.callParent()
		}
	}
	n := f.begin(rec, at, parent, KindInterrupt, name)
	n.span.ToolCallID, n.span.Status = callID, StatusWaiting
	return n
}

// resolveInterrupts ends the interrupt of a decision that was carried out.
func (f *Fold) resolveInterrupts(at time.Time, d stream.Decided) {
	for _, n := range f.interrupts {
		if n.span.ToolCallID == d.CallID && n.question == (d.Question > 0) && n.isOpen() {
			f.resolve(n, at, d.Kind)
		}
	}
}

// resolve ends an interrupt with a decision.
func (f *Fold) resolve(n *node, at time.Time, decision string) {
	if n.span.Decision == "" {
		n.span.Decision = decision
	}
	f.end(n, at, StatusFinished)
}

// auditEntry is what the trace reads of an entry of the audit (package inbox).
type auditEntry struct {
	Event struct {
		Type     string    `json:"type"`
		At       time.Time `json:"at"`
		Approval struct {
			ID        string `json:"id"`
			Decisions []struct {
				Decision string `json:"decision"`
			} `json:"decisions"`
		} `json:"approval"`
	} `json:"event"`
}

// addAudit ends an interrupt that the audit tells to be decided or expired, also after the run has
// ended: the next run carries the decision out. When none is left, the run waits no longer.
func (f *Fold) addAudit(ctx context.Context, rec *stream.Record) error {
	var entry auditEntry
	if err := rec.Result(ctx, &entry); err != nil {
		return err
	}
	n := f.interrupts[entry.Event.Approval.ID]
	if n == nil {
		return nil
	}
	decision := "expire"
	if all := entry.Event.Approval.Decisions; len(all) > 0 {
		decision = all[len(all)-1].Decision
	}
	switch entry.Event.Type {
	case "decided", "expired":
		f.touch(n, rec)
		f.resolve(n, entry.Event.At, decision)
	}
	f.endWaiting()
	return nil
}

// endWaiting ends the spans that wait for interrupts of a run that has ended, if all are decided.
func (f *Fold) endWaiting() {
	if !f.isSealed || f.run.Status != StatusWaiting {
		return
	}
	for _, n := range f.interrupts {
		if n.isOpen() {
			return
		}
	}
	f.run.Status = StatusFinished
	for _, n := range f.nodes {
		if n.span.Status == StatusWaiting {
			n.span.Status = StatusFinished
			f.change(n)
		}
	}
}
