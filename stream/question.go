package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

// ToolQuestion returns the question with which a tool call has ended, from the done record with a
// sequence. The error is ErrLogLost if the log lacks that record.
func (l *Log) ToolQuestion(ctx context.Context, seq uint64) (*ToolQuestion, error) {
	done, err := l.resultAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	if done.Question == nil {
		return nil, fmt.Errorf("stream: record %d has no question", seq)
	}
	return done.Question, nil
}

// MetadataQuestion is the key of a QuestionSource in the metadata of an interrupt.
const MetadataQuestion = "perdure.question"

// QuestionSource tells which question of a tool call an interrupt is: Number counts the questions
// of the call from 1.
type QuestionSource struct {
	Agent    string    `json:"agent"`
	Revision string    `json:"revision"`
	Tool     string    `json:"tool"`
	Number   int       `json:"number"`
	OpenedAt time.Time `json:"openedAt"`
	// CallID and RemoteID are set if a remote agent asks: what stands for the call in decisions
	// (CallOf), and the remote's own ID of the interrupt.
	CallID   string `json:"callId,omitempty"`
	RemoteID string `json:"remoteId,omitempty"`
	// Quorum is how many approvers must give the same answer, if a rule says who answers; 0 = there is
	// none, and callers that may decide in the thread answer.
	Quorum int `json:"quorum,omitempty"`
}

// QuestionSourceOf reads the source of an interrupt. Its Number is 0 if the interrupt is not a
// question of a tool but an approval of the call.
func QuestionSourceOf(interrupt agui.Interrupt) (QuestionSource, error) {
	var source QuestionSource
	raw, ok := interrupt.Metadata[MetadataQuestion]
	if !ok {
		return source, nil
	}
	if err := json.Unmarshal(raw, &source); err != nil {
		return source, fmt.Errorf("stream: interrupt %s: %w", interrupt.ID, err)
	}
	return source, nil
}

// WaitIn returns what an interrupt waits for instead of people; nil = people decide, or the metadata is
// invalid.
func WaitIn(interrupt agui.Interrupt) *Wait {
	raw, ok := interrupt.Metadata[MetadataWait]
	if !ok {
		return nil
	}
	wait := &Wait{}
	if json.Unmarshal(raw, wait) != nil {
		return nil
	}
	return wait
}

// Answers reports whether the decision is about this interrupt: about the same call, and the same
// question of the call.
func (d Decided) Answers(interrupt agui.Interrupt) bool {
	source, err := QuestionSourceOf(interrupt)
	return err == nil && CallOf(interrupt) == d.CallID && source.Number == d.Question
}

// CallOf returns the call that decisions about an interrupt name: its tool call, or what stands for one
// if a remote agent asks.
func CallOf(interrupt agui.Interrupt) string {
	source, err := QuestionSourceOf(interrupt)
	if err == nil && source.CallID != "" {
		return source.CallID
	}
	return interrupt.ToolCallID
}

// RemoteRun returns what the done record with a sequence has of a remote run. The error is ErrLogLost
// if the log lacks that record.
func (l *Log) RemoteRun(ctx context.Context, seq uint64) (*RemoteRun, error) {
	done, err := l.resultAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	if done.Remote == nil {
		return nil, fmt.Errorf("stream: record %d is not of a remote run", seq)
	}
	return done.Remote, nil
}

// resultAt returns the result of the done record with a sequence. The error is ErrLogLost if the log
// lacks that record.
func (l *Log) resultAt(ctx context.Context, seq uint64) (done Result, err error) {
	rec, err := l.At(ctx, seq)
	if err != nil {
		return done, err
	}
	if rec == nil {
		return done, fmt.Errorf("%w: record %d", ErrLogLost, seq)
	}
	return done, rec.Result(ctx, &done)
}
