package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// A decision is late if another one about its interrupt was carried out first: that of another
// approver, or expiry. The late decision changes nothing. If it differs, its client gets an event
// with the decision that was carried out.

// CustomDecision is the name of the CUSTOM event that tells a client which decision was carried out
// instead of its own.
const CustomDecision = "perdure.decision"

// EffectiveDecision is the value of a CustomDecision event: the decision that was carried out.
type EffectiveDecision struct {
	InterruptID string `json:"interruptId"`
	ToolCallID  string `json:"toolCallId"`
	// Decision is approve, edit, reject, answer, cancel or expire.
	Decision string `json:"decision"`
	// Args, Content and Reason are those of the decision (see stream.Decision).
	Args    json.RawMessage `json:"args,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// LateEvents returns the events for a client whose decisions differ from those that were carried
// out. thread is a snapshot after those decisions. Interrupts that it does not know any
// more have no event.
func (s *Store) LateEvents(ctx context.Context, decisions []stream.ResumeDecision, thread *Snapshot) ([]agui.Event, error) {
	var events []agui.Event
	for _, late := range decisions {
		index := slices.IndexFunc(thread.Answered, func(i agui.Interrupt) bool { return i.ID == late.InterruptID })
		if index < 0 {
			continue
		}
		interrupt := thread.Answered[index]
		decided := slices.IndexFunc(thread.Decided, func(d stream.Decided) bool { return d.Answers(interrupt) })
		if decided < 0 {
			continue
		}
		recorded, err := s.recordedDecision(ctx, thread.Decided[decided])
		if err != nil {
			return nil, err
		}
		if sameDecision(recorded, &late.Decision) {
			continue
		}
		value, err := json.Marshal(effectiveDecision(recorded, interrupt))
		if err != nil {
			return nil, fmt.Errorf("snapshot: encode decision: %w", err)
		}
		events = append(events, &agui.Custom{Name: CustomDecision, Value: value})
	}
	return events, nil
}

// recordedDecision returns a decision that was carried out, with its content from the log; without
// content if no caller decided.
func (s *Store) recordedDecision(ctx context.Context, d stream.Decided) (*stream.Decision, error) {
	if d.Proposal == 0 {
		return &stream.Decision{Kind: d.Kind}, nil
	}
	return s.log.Decision(ctx, d.Proposal)
}

// sameDecision reports whether two decisions have the same effect, whatever their callers and
// reasons.
func sameDecision(d, other *stream.Decision) bool {
	return d.Kind == other.Kind && bytes.Equal(d.Args, other.Args) && bytes.Equal(d.Content, other.Content) && resultText(d) == resultText(other)
}

// resultText returns the text of the tool result of a decision; "" = it has none.
func resultText(d *stream.Decision) string {
	if d.Result == nil {
		return ""
	}
	return d.Result.Content.Text()
}

// effectiveDecision returns the value of the event for a decision about an interrupt.
func effectiveDecision(d *stream.Decision, interrupt agui.Interrupt) EffectiveDecision {
	s := EffectiveDecision{InterruptID: interrupt.ID, ToolCallID: interrupt.ToolCallID, Decision: d.Kind, Args: d.Args, Content: d.Content, Reason: d.Reason}
	if d.Result != nil {
		s.Content, _ = json.Marshal(resultText(d)) // a text always can be
	}
	return s
}
