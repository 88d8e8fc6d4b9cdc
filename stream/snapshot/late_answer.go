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

// CustomDecision tells who answers too late what was decided instead.
const CustomDecision = "perdure.decision"

// Stands is what such an answer is told: which decision stands.
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

// LateEvents tell the client of an input which of its answers disagree with what was decided.
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
		if says(stands, &late.Said) {
			continue
		}
		value, err := json.Marshal(told(stands, question))
		if err != nil {
			return nil, fmt.Errorf("snapshot: encode decision: %w", err)
		}
		events = append(events, &agui.Custom{Name: CustomDecision, Value: value})
	}
	return events, nil
}

// stands is what was said in a decision that was carried out.
func (s *Store) stands(ctx context.Context, d stream.Decided) (*stream.Decision, error) {
	if d.Proposal == 0 {
		return &stream.Decision{Verdict: d.Verdict}, nil
	}
	return s.log.Decision(ctx, d.Proposal)
}

// says tells whether another decision is the same, whoever made it and for whatever reason.
func says(d, other *stream.Decision) bool {
	return d.Verdict == other.Verdict && bytes.Equal(d.Args, other.Args) && bytes.Equal(d.Content, other.Content) && text(d) == text(other)
}

func text(d *stream.Decision) string {
	if d.Result == nil {
		return ""
	}
	return d.Result.Content.Text()
}

func told(d *stream.Decision, question agui.Interrupt) Stands {
	s := Stands{InterruptID: question.ID, ToolCallID: question.ToolCallID, Decision: d.Verdict, Args: d.Args, Content: d.Content, Reason: d.Reason}
	if d.Result != nil {
		s.Content, _ = json.Marshal(text(d)) // a text always can be
	}
	return s
}
