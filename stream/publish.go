package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that the callers of this package tell apart.
var (
	// ErrFenced tells that another writer owns the lane. The writer stops, and reports no error to
	// readers: the other writer does the step now. It need not be the later attempt, so the step
	// may be attempted again.
	ErrFenced = errors.New("stream: fenced: the lane has another writer")
	// ErrOver is an ErrFenced that is final: the lane has a later step, the run is sealed, or it
	// belongs to another execution.
	ErrOver = fmt.Errorf("%w: the step is over", ErrFenced)
	// ErrUnavailable tells that the log does not answer. The same call may succeed later.
	ErrUnavailable = errors.New("stream: the log is out of reach")
	// ErrLogLost tells that the log lacks a record that was acknowledged, for instance after a
	// restore from an older copy.
	ErrLogLost = errors.New("stream: the log lacks acknowledged records")
)

const (
	publishPatience = 2 * time.Second        // for one acknowledgement
	firstPause      = 5 * time.Millisecond   // before looking after an unclear answer
	longestPause    = 500 * time.Millisecond // between looks while the log is out of reach
)

// codeWrongLastSequence is JetStream's answer to an expected sequence that isn't the lane's last.
const codeWrongLastSequence = 10071

// append writes one record directly after the sequence expected of its lane (0 = first), and
// returns its sequence. It retries during outages, and while the stream is full, until ctx ends.
//
// An error code alone never means fenced: an acknowledgement may be lost, and the writer's own
// retry is refused then. The lane's last record decides.
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
		if !refused(err) || try > 0 {
			if err := sleep(ctx, pause); err != nil {
				return 0, err
			}
			pause = min(2*pause, longestPause)
		}
		seq, err = l.resolve(ctx, msg.Subject, s, expected)
		if seq != 0 || err != nil {
			return seq, err
		}
	}
}

// resolve finds out what became of a record whose publication had no clear answer. It returns the
// sequence if the record was written, 0 if it was not, and ErrFenced if the lane has a record of
// another writer.
func (l *Log) resolve(ctx context.Context, subject string, s stamp, expected uint64) (uint64, error) {
	last, err := l.lastOfLane(ctx, subject)
	if err != nil {
		return 0, err
	}
	switch found := lastSeq(last); {
	case found == expected:
		return 0, nil
	case found < expected:
		return 0, fmt.Errorf("%w: %s ends at %d, not at %d", ErrLogLost, subject, found, expected)
	case last.Writer == s.writer && last.Frame == s.frame:
		return found, nil
	default:
		return 0, ErrFenced
	}
}

// lastOfLane returns the lane's last record to a writer. It retries during outages, until ctx ends.
func (l *Log) lastOfLane(ctx context.Context, subject string) (*Record, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		last, err := l.Last(ctx, subject)
		if !errors.Is(err, ErrUnavailable) || isPermanent(err) {
			return last, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// isPermanent reports whether the same request can never succeed.
func isPermanent(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrBadSubject) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// asUnavailable marks a failure to reach the log as ErrUnavailable, unless the caller's context has
// ended.
func asUnavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, ErrLogLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func lastSeq(r *Record) uint64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// publish sends one message and waits for its acknowledgement. The client library's retries are
// off: append decides when to send again.
func (l *Log) publish(ctx context.Context, msg *nats.Msg, expected uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// refused reports whether JetStream answered that the lane's last sequence is another one. Only
// after this answer can the lane be read at once.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
