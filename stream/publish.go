package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
)

// This file appends one record to a lane: the fence, the retries during outages, and the judgment
// of unclear answers. mark.go does the same for two records at once.

// Errors that the callers of this package tell apart.
var (
	// ErrFenced tells that another writer owns the lane. The fenced writer stops, and reports no
	// error to readers: the other writer does the step now. The other writer may be the earlier
	// attempt, so Temporal may attempt the step again.
	ErrFenced = errors.New("stream: fenced: the lane has another writer")
	// ErrOver is an ErrFenced that is final: the lane has a later step, the run is sealed, or it
	// belongs to another execution.
	ErrOver = fmt.Errorf("%w: the step is over", ErrFenced)
	// ErrUnavailable tells that the log does not answer. The same call may succeed later, and a
	// write may have reached the log.
	ErrUnavailable = errors.New("stream: the log is unavailable")
	// ErrLogLost tells that the log lacks a record that was acknowledged, for instance after a
	// restore from an older copy.
	ErrLogLost = errors.New("stream: the log lacks acknowledged records")
)

const (
	publishTimeout = 2 * time.Second        // for one acknowledgement
	firstPause     = 5 * time.Millisecond   // before the lane is read after an unclear answer; each pause doubles the one before
	longestPause   = 500 * time.Millisecond // between two attempts while the log is unavailable
)

// codeWrongLastSequence is JetStream's error code for an expected sequence that is not the last one
// of the subject.
const codeWrongLastSequence = 10071

// append writes one record directly after the sequence expected of its lane (0 = it is the first
// record), and returns its sequence. It retries during outages, and while the stream is full, until
// ctx ends. The error is ErrFenced or ErrLogLost (see resolveWrite), an error of which isPermanent
// holds, or the cause of ctx.
//
// An error code alone never means fenced: if an acknowledgement was lost, the writer's own retry is
// refused. The lane's last record decides.
func (l *Log) append(ctx context.Context, msg *nats.Msg, s stamp, expected uint64) (uint64, error) {
	pause := firstPause
	for try := 0; ; try++ {
		seq, err := l.publish(ctx, msg, expected)
		if err == nil {
			return seq, nil
		}
		if isPermanent(err) {
			return 0, fmt.Errorf("stream: append to %s: %w", msg.Subject, asUnavailable(err))
		}
		if !isWrongLastSequence(err) || try > 0 { // a message whose acknowledgement is late may still arrive
			if err := durations.Sleep(ctx, pause); err != nil {
				return 0, err
			}
			pause = min(2*pause, longestPause)
		}
		seq, err = l.resolveWrite(ctx, msg.Subject, s, expected)
		if seq != 0 || err != nil {
			return seq, err
		}
	}
}

// resolveWrite finds out what became of a record whose publication had no clear answer. It returns
// the sequence if the record was written, and 0 without an error if the lane still ends at
// expected. The error is ErrFenced if another record follows expected, and ErrLogLost if the lane
// ends before it.
func (l *Log) resolveWrite(ctx context.Context, subject string, s stamp, expected uint64) (uint64, error) {
	last, err := l.lastOfLane(ctx, subject)
	if err != nil {
		return 0, err
	}
	switch seq := lastSeq(last); {
	case seq == expected:
		return 0, nil
	case seq < expected:
		return 0, fmt.Errorf("%w: %s ends at %d, not at %d", ErrLogLost, subject, seq, expected)
	case last.Writer == s.writer && last.Frame == s.frame:
		return seq, nil
	default:
		return 0, ErrFenced
	}
}

// lastOfLane returns the lane's last record to a writer; nil = the lane is empty. Unlike Last it
// retries during outages, until ctx ends.
func (l *Log) lastOfLane(ctx context.Context, subject string) (*Record, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		last, err := l.Last(ctx, subject)
		if !errors.Is(err, ErrUnavailable) || isPermanent(err) {
			return last, err
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// isPermanent reports whether the same request can never succeed: retries stop.
func isPermanent(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrBadSubject) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// asUnavailable marks a failure to reach the log as ErrUnavailable. It leaves cancellation, lost
// records and messages that are too large as they are.
func asUnavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, ErrLogLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// lastSeq returns the sequence of the last record of a lane; 0 = the lane is empty.
func lastSeq(r *Record) uint64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// publish sends one message with the expected last sequence of its subject, and waits at most
// publishTimeout for the acknowledgement. The client library's retries are off: they would not
// look at the lane in between.
func (l *Log) publish(ctx context.Context, msg *nats.Msg, expected uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// isWrongLastSequence reports whether JetStream answered that the subject's last sequence is
// another one. Only after this answer is the message certainly not in flight any more, so the lane
// can be read at once.
func isWrongLastSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}
