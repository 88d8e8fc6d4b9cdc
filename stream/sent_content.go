package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
)

// Sent is a message or a state that a caller has sent to a thread.
type Sent struct {
	// Time is when the API received it.
	Time time.Time
	// Message is nil for a state.
	Message *agui.Message
	// State is that of an input; nil = a message.
	State json.RawMessage
}

// SentBy yields what a subject has sent to a thread, in the order of the log: messages and states of
// inputs, steering messages, and results of client tools and of decisions. It includes messages that
// left the conversation later. It reads all records of the thread.
func (l *Log) SentBy(ctx context.Context, t Thread, subject string) iter.Seq2[Sent, error] {
	return func(yield func(Sent, error) bool) {
		var proposals []*Record
		last := map[string]int{} // index of the last proposal, by run and lane
		for rec, err := range l.recordsUnder(ctx, l.ThreadSubject(t)+".>") {
			if err != nil {
				yield(Sent{}, err)
				return
			}
			lane := rec.run + "." + string(rec.Lane)
			switch {
			case rec.Kind != KindProposal || strings.HasPrefix(rec.Step, claimStep):
			case rec.Step == withdrawalStep: // the content of the proposal before is removed
				if i, ok := last[lane]; ok {
					proposals[i] = nil
				}
			default:
				last[lane] = len(proposals)
				proposals = append(proposals, rec)
			}
		}
		for _, rec := range proposals {
			if rec == nil {
				continue
			}
			all, err := rec.sentBy(ctx, subject)
			if err != nil {
				yield(Sent{}, err)
				return
			}
			for _, sent := range all {
				if !yield(sent, nil) {
					return
				}
			}
		}
	}
}

// sentBy returns the messages and the state of a proposal if a subject has made it.
func (r *Record) sentBy(ctx context.Context, subject string) ([]Sent, error) {
	var p struct {
		Input
		Result *agui.Message   `json:"result"` // of a Decision
		By     *auth.Principal `json:"by"`
	}
	if err := r.Result(ctx, &p); err != nil {
		return nil, err
	}
	author := p.By
	if author == nil {
		author = p.Sender
	}
	if author == nil {
		author = p.Requester
	}
	if author == nil || author.Subject != subject {
		return nil, nil
	}
	var all []Sent
	add := func(m *agui.Message) {
		if m != nil {
			all = append(all, Sent{Time: r.Time, Message: m})
		}
	}
	for _, m := range p.Accepted.Tail {
		add(m.Message)
	}
	for i := range p.Accepted.Updated {
		add(&p.Accepted.Updated[i])
	}
	add(p.Result)
	if state := bytes.TrimSpace(p.Input.Input.State); len(state) > 0 && string(state) != "null" && string(state) != "{}" {
		all = append(all, Sent{Time: r.Time, State: state})
	}
	return all, nil
}
