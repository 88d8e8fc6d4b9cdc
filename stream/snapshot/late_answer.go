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

// CustomDecision is the name of the event that tells a client which decision stands instead of its
// own.
const CustomDecision = "perdure.decision"

// Stands is the value of that event: the decision that was carried out.
type Stands struct {
	InterruptID string `json:"interruptId"`
	ToolCallID  string `json:"toolCallId"`
	// Decision is approve, edit, reject, answer, cancel or expire.
	Decision string `json:"decision"`
	// Args, Content and Reason are what was said with it.
	Args    json.RawMessage `json:"args,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// LateEvents returns the events for a client whose answers differ from what was decided.
func (s *Store) LateEvents(ctx context.Context, answers []stream.LateAnswer, thread *Snapshot) ([]agui.Event, error) {
	var events []agui.Event
	for _, late := range answers {
		asked := slices.IndexFunc(thread.Answered, func(q agui.Interrupt) bool { return q.ID == late.InterruptID })
		if asked < 0 {
			continue
		}
		question := thread.Answered[asked]
		decided := slices.IndexFunc(thread.Decided, func(d stream.Decided) bool { return d.Answers(question) })
		if decided < 0 {
			continue
		}
		stands, err := s.stands(ctx, thread.Decided[decided])
		if err != nil {
			return nil, err
		}
		if sameDecision(stands, &late.Said) {
			continue
		}
		value, err := json.Marshal(standsOf(stands, question))
		if err != nil {
			return nil, fmt.Errorf("snapshot: encode decision: %w", err)
		}
		events = append(events, &agui.Custom{Name: CustomDecision, Value: value})
	}
	return events, nil
}

// stands returns a decision that was carried out.
func (s *Store) stands(ctx context.Context, d stream.Decided) (*stream.Decision, error) {
	if d.Proposal == 0 {
		return &stream.Decision{Kind: d.Kind}, nil
	}
	return s.log.Decision(ctx, d.Proposal)
}

// sameDecision reports whether two decisions are the same, whoever made them and for whatever
// reason.
func sameDecision(d, other *stream.Decision) bool {
	return d.Kind == other.Kind && bytes.Equal(d.Args, other.Args) && bytes.Equal(d.Content, other.Content) && text(d) == text(other)
}

func text(d *stream.Decision) string {
	if d.Result == nil {
		return ""
	}
	return d.Result.Content.Text()
}

func standsOf(d *stream.Decision, question agui.Interrupt) Stands {
	s := Stands{InterruptID: question.ID, ToolCallID: question.ToolCallID, Decision: d.Kind, Args: d.Args, Content: d.Content, Reason: d.Reason}
	if d.Result != nil {
		s.Content, _ = json.Marshal(text(d)) // a text always can be
	}
	return s
}
