package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// CustomDecision tells who answers too late what was decided instead.
const CustomDecision = "perdure.decision"

// LateAnswer is an answer to a question, which may have been decided without it.
type LateAnswer struct {
	InterruptID string   `json:"interruptId"`
	Said        Decision `json:"said"`
}

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
func (l *Log) LateEvents(ctx context.Context, answers []LateAnswer, thread *Reduction) ([]agui.Event, error) {
	var events []agui.Event
	for _, late := range answers {
		asked := slices.IndexFunc(thread.Answered, func(q agui.Interrupt) bool { return q.ID == late.InterruptID })
		if asked < 0 {
			continue
		}
		question := thread.Answered[asked]
		decided := slices.IndexFunc(thread.Decided, func(d Decided) bool { return d.answers(question) })
		if decided < 0 {
			continue
		}
		stands, err := l.stands(ctx, thread.Decided[decided])
		if err != nil {
			return nil, err
		}
		if stands.says(&late.Said) {
			continue
		}
		value, err := json.Marshal(stands.told(question))
		if err != nil {
			return nil, fmt.Errorf("stream: encode decision: %w", err)
		}
		events = append(events, &agui.Custom{Name: CustomDecision, Value: value})
	}
	return events, nil
}

// stands is what was said in a decision that was carried out.
func (l *Log) stands(ctx context.Context, d Decided) (*Decision, error) {
	if d.Proposal == 0 {
		return &Decision{Verdict: d.Verdict}, nil
	}
	return l.Decision(ctx, d.Proposal)
}

// says tells whether another decision is the same, whoever made it and for whatever reason.
func (d *Decision) says(other *Decision) bool {
	return d.Verdict == other.Verdict && bytes.Equal(d.Args, other.Args) && bytes.Equal(d.Content, other.Content) && d.text() == other.text()
}

func (d *Decision) text() string {
	if d.Result == nil {
		return ""
	}
	return d.Result.Content.Text()
}

func (d *Decision) told(question agui.Interrupt) Stands {
	s := Stands{InterruptID: question.ID, ToolCallID: question.ToolCallID, Decision: d.Verdict, Args: d.Args, Content: d.Content, Reason: d.Reason}
	if d.Result != nil {
		s.Content, _ = json.Marshal(d.text()) // a text always can be
	}
	return s
}
