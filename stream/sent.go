package stream

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
)

// SentMessage is a message that a caller has sent to a thread.
type SentMessage struct {
	// Time is when the API received the message.
	Time    time.Time
	Message agui.Message
}

// SentBy yields the messages that a subject has sent to a thread, in the order of the log: those of
// inputs, steering messages and results of client tools and of decisions. It includes messages that
// left the conversation later, and those of inputs that the thread refused. It reads all records of
// the thread.
func (l *Log) SentBy(ctx context.Context, t Thread, subject string) iter.Seq2[SentMessage, error] {
	return func(yield func(SentMessage, error) bool) {
		var proposals []*Record
		last := map[string]int{} // index of the last proposal, by run and lane
		for rec, err := range l.recordsUnder(ctx, l.ThreadSubject(t)+".>") {
			if err != nil {
				yield(SentMessage{}, err)
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
			messages, err := rec.sentBy(ctx, subject)
			if err != nil {
				yield(SentMessage{}, err)
				return
			}
			for _, m := range messages {
				if !yield(SentMessage{rec.Time, m}, nil) {
					return
				}
			}
		}
	}
}

// sentBy returns the messages of a proposal if a subject has made it.
func (r *Record) sentBy(ctx context.Context, subject string) ([]agui.Message, error) {
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
	var messages []agui.Message
	for _, m := range p.Accepted.Tail {
		if m.Message != nil {
			messages = append(messages, *m.Message)
		}
	}
	messages = append(messages, p.Accepted.Updated...)
	if p.Result != nil {
		messages = append(messages, *p.Result)
	}
	return messages, nil
}
