package stream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
)

// A lane orders the records of its writer; nothing orders different lanes. Two branches that read
// the same counter and each write it plus one would lose an increment.
//
// A step that changes the state depending on its value therefore writes two records at once: a
// mark, on a lane that the whole run shares, and its done record. The mark must follow the last
// mark that the step has seen. If it does not, another step has changed the state meanwhile:
// neither record is written, and the step reads the state again. JetStream writes both or neither
// (atomic batches, ADR-50, NATS 2.12).

// ErrStale tells that the state was changed after the caller read it. Nothing was written.
var ErrStale = errors.New("stream: the state was changed concurrently")

// mark is the compare-and-swap condition of a record: the subject of the run's marks, and the
// sequence of the last mark that the step has seen (after; 0 = none).
type mark struct {
	subject string
	after   uint64
}

// appendWithMark appends a record and a mark, both or neither. It retries during outages until ctx
// ends, as append does. The error is ErrStale if the last mark is another one, and else that of
// append.
//
// The record's lane decides whether an unclear batch was written, before the mark is looked at: the
// batch's own mark would make a written batch look stale.
func (l *Log) appendWithMark(ctx context.Context, msg *nats.Msg, s stamp, expected uint64, condition mark) (uint64, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		seq, err := l.publishWithMark(ctx, msg, s, expected, condition)
		if err == nil {
			return seq, nil
		}
		if isPermanent(err) {
			return 0, fmt.Errorf("stream: append to %s: %w", msg.Subject, asUnavailable(err))
		}
		if !isWrongLastSequence(err) {
			if err := durations.Sleep(ctx, pause); err != nil {
				return 0, err
			}
		}
		if seq, err = l.resolveWrite(ctx, msg.Subject, s, expected); seq != 0 || err != nil {
			return seq, err
		}
		last, err := l.lastOfLane(ctx, condition.subject)
		if err != nil {
			return 0, err
		}
		if lastSeq(last) != condition.after {
			return 0, ErrStale
		}
	}
}

// Headers of an atomic batch (ADR-50).
const (
	headerBatch         = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// publishWithMark sends the mark and the record as one batch, each with its expected last sequence,
// and waits for the acknowledgement, which has the record's sequence.
func (l *Log) publishWithMark(ctx context.Context, msg *nats.Msg, s stamp, expected uint64, condition mark) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	batch := strings.ToLower(rand.Text())
	first := plainMessage(condition.subject, stamp{kind: KindMark, step: s.step, writer: s.writer}, nil, nil)
	setBatchHeaders(first, batch, 1, condition.after)
	second := nats.NewMsg(msg.Subject)
	second.Data, second.Header = msg.Data, nats.Header{header: msg.Header[header], headerBatchCommit: {"1"}}
	setBatchHeaders(second, batch, 2, expected)
	if err := l.nc.PublishMsg(first); err != nil {
		return 0, err
	}
	answer, err := l.nc.RequestMsgWithContext(ctx, second)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Sequence uint64              `json:"seq"`
		Error    *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("stream: acknowledgement: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Sequence, nil
}

// setBatchHeaders makes a message the at-th of a batch, from 1; it must follow the record after of
// its subject.
func setBatchHeaders(msg *nats.Msg, batch string, at int, after uint64) {
	msg.Header.Set(headerBatch, batch)
	msg.Header.Set(headerBatchSequence, strconv.Itoa(at))
	msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(after, 10))
}
