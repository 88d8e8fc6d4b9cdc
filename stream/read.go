package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
)

// This file reads the log. A cluster needs reads that are more exact than the client library's.
// Last, First and At are exact (get.go). Other records are fetched in batches by JetStream's direct
// get (ADR-31), which needs no consumer and may be answered by a lagging replica. So a batch is
// repeated until it reaches the sequence that an exact read has named.

// Bounds of one read.
const (
	readTimeout     = 2 * time.Second // for one response
	maxGetBytes     = 1 << 20         // of messages in one response of direct get
	firstGetRecords = 256             // records; each batch doubles the one before
	maxGetRecords   = 2048
)

// Last reads the last record under a subject, which may end in ">". nil = there is none. It waits at
// most readTimeout; the error is ErrUnavailable if the server does not answer.
func (l *Log) Last(ctx context.Context, subject string) (*Record, error) {
	return l.sendGet(ctx, getRequest{LastFor: subject})
}

// First reads the first record under a subject at or after a sequence. nil = there is none.
func (l *Log) First(ctx context.Context, subject string, from uint64) (*Record, error) {
	return l.sendGet(ctx, getRequest{NextFor: subject, Seq: max(from, 1)})
}

// At reads the record with a sequence, of whatever subject. nil = the log has not reached it, or it
// was purged (see Missing).
func (l *Log) At(ctx context.Context, seq uint64) (*Record, error) {
	return l.sendGet(ctx, getRequest{Seq: seq})
}

// Kept decodes into v the value that the done record with a sequence keeps for later steps (see
// Result.Kept). The error is ErrLogLost if the record is not a done record of the thread.
func (l *Log) Kept(ctx context.Context, t Thread, seq uint64, v any) error {
	rec, err := l.At(ctx, seq)
	if err != nil {
		return err
	}
	if rec == nil || rec.thread != l.ThreadSubject(t) || rec.Kind != KindDone {
		return fmt.Errorf("%w: the stored result of step %d", ErrLogLost, seq)
	}
	var result Result
	if err := rec.Result(ctx, &result); err != nil {
		return err
	}
	if err := json.Unmarshal(result.Kept, v); err != nil {
		return fmt.Errorf("stream: decode the stored result of record %d: %w", seq, err)
	}
	return nil
}

// Detail returns the detail of a failure: of an attempt that failed for good (Attempt.Fail), or of
// a finished step whose Result.Kept has a detail. It returns "" if the thread has no such record.
func (l *Log) Detail(ctx context.Context, t Thread, seq uint64) (string, error) {
	rec, err := l.At(ctx, seq)
	if err != nil || rec == nil || rec.thread != l.ThreadSubject(t) || !rec.HasResult() {
		return "", err
	}
	var note failureDetail
	switch rec.Kind {
	case KindAttempt:
		err = rec.Result(ctx, &note)
	case KindDone:
		var result Result
		if err = rec.Result(ctx, &result); err == nil && len(result.Kept) > 0 {
			err = json.Unmarshal(result.Kept, &note)
		}
	}
	if err != nil {
		return "", fmt.Errorf("stream: detail of record %d: %w", seq, err)
	}
	return note.Detail, nil
}

// sendGet asks the log's stream for one record; nil = there is none.
func (l *Log) sendGet(ctx context.Context, req getRequest) (*Record, error) {
	m, err := l.askStream(ctx, l.name, req)
	if err != nil || m == nil {
		return nil, err
	}
	return decodeRecord(l, m.Subject, m.Seq, m.Time, m.Header.Get(header), m.Data)
}

// errReplicaLags tells that the leader has a record that the replicas do not have yet. Reading
// again helps.
var errReplicaLags = fmt.Errorf("%w: the replicas lag", ErrUnavailable)

// Records yields the records under a subject with from ≤ sequence ≤ to, in order. to must be the
// sequence of a record under that subject which the leader has: a batch of a replica that lacks it
// is requested again, with pauses. A replica that keeps lagging is ErrUnavailable, not ErrLogLost.
// After an error Records yields no more. If a purge removes the record to meanwhile, Records ends
// without an error at a later record, if there is one.
func (l *Log) Records(ctx context.Context, subject string, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		pause, size := firstPause, firstGetRecords
		for from <= to {
			before := from
			for r, err := range l.directGet(ctx, subject, from, size, maxGetBytes) {
				if err != nil {
					yield(nil, err)
					return
				}
				if r.Seq > to {
					return
				}
				from = r.Seq + 1
				if !yield(r, nil) {
					return
				}
			}
			if from != before { // a batch with records resets the pauses
				pause, size = firstPause, min(2*size, maxGetRecords)
				continue
			}
			if pause > longestPause {
				yield(nil, fmt.Errorf("%w: record %d of %s", errReplicaLags, to, subject))
				return
			}
			if err := durations.Sleep(ctx, pause); err != nil {
				yield(nil, err)
				return
			}
			pause *= 2
		}
	}
}

// Bounds of a batch: the records that a reader holds while its client takes them.
const (
	batchRecords  = 512
	batchBytes    = 96 << 10 // or one record that is larger
	batchGetBytes = 64 << 10 // JetStream ends a batch with the record that reaches it
)

// batch is a bounded number of records that a reader holds at a time.
type batch struct {
	records []*Record
	bytes   int
}

// add adds a record; it returns false if the batch has no room for it. An empty batch has room for
// any record.
func (b *batch) add(r *Record) bool {
	if len(b.records) > 0 && (b.bytes+r.size > batchBytes || len(b.records) == batchRecords) {
		return false
	}
	b.records = append(b.records, r)
	b.bytes += r.size
	return true
}

// readBatch returns the next records under a subject with from ≤ sequence ≤ to, at most a batch. It
// returns none only if the record to was withdrawn meanwhile and the range has no other. As for
// Records, to must exist; the error is ErrGone if it was purged. No request is in flight when
// readBatch returns, so a slow client of the reader costs the log nothing.
func (l *Log) readBatch(ctx context.Context, subject string, from, to uint64) ([]*Record, error) {
	for pause := firstPause; pause <= longestPause; pause *= 2 {
		var b batch
		for r, err := range l.directGet(ctx, subject, from, batchRecords, batchGetBytes) {
			switch {
			case err != nil:
				return nil, err
			case r.Seq > to && len(b.records) == 0:
				return nil, l.emptyRangeError(ctx, subject, to)
			}
			if r.Seq > to || !b.add(r) {
				break
			}
		}
		if len(b.records) > 0 {
			return b.records, nil
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
	if err := l.emptyRangeError(ctx, subject, to); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: record %d", errReplicaLags, to)
}

// emptyRangeError returns the reason why a range under a subject has no record although the one at
// its end existed: ErrGone if that was purged, errReplicaLags if the replicas lag, and nil if it was
// withdrawn.
func (l *Log) emptyRangeError(ctx context.Context, subject string, seq uint64) error {
	rec, err := l.At(ctx, seq)
	if err == nil && rec == nil {
		var withdrawn bool
		if withdrawn, err = l.missing(ctx, threadOf(subject), seq); withdrawn {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: record %d", errReplicaLags, seq)
}

// directGet yields the records of one direct get: at most size, up to the one that reaches a number
// of bytes, from whatever replica answers. It may yield none. Each message names the sequence of
// the one before it (ADR-31), so a batch that lost a message on the way ends early instead of
// skipping it.
func (l *Log) directGet(ctx context.Context, subject string, from uint64, size, bytes int) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		body, err := json.Marshal(getRequest{Seq: from, NextFor: subject, Batch: size, MaxBytes: bytes})
		if err != nil {
			yield(nil, err)
			return
		}
		inbox := l.nc.NewInbox() // not the connection's inbox for answers: it would receive every message twice
		// Room for all messages of the batch and its end. A subscription without a channel would
		// allocate room for 65,536 messages, which is 512 KiB of garbage for each read.
		messages := make(chan *nats.Msg, size+1)
		sub, err := l.nc.ChanSubscribe(inbox, messages)
		if err != nil {
			yield(nil, asUnavailable(err))
			return
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+l.name, inbox, body); err != nil {
			yield(nil, asUnavailable(err))
			return
		}
		for before := "0"; ; {
			msg, err := receiveMessage(ctx, messages)
			if err != nil {
				yield(nil, asUnavailable(err))
				return
			}
			switch status := msg.Header.Get("Status"); status {
			case "":
			case "204", "404": // ADR-31: end of the batch; no such message
				return
			default:
				yield(nil, fmt.Errorf("%w: status %s %s", ErrUnavailable, status, msg.Header.Get("Description")))
				return
			}
			if msg.Header.Get("Nats-Last-Sequence") != before {
				return
			}
			before = msg.Header.Get("Nats-Sequence")
			r, err := decodeDirectGet(l, msg)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// receiveMessage waits for the next message, at most readTimeout.
func receiveMessage(ctx context.Context, messages <-chan *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case msg := <-messages:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// decodeDirectGet decodes a message of direct get to a record.
func decodeDirectGet(l *Log, msg *nats.Msg) (*Record, error) {
	m, err := storedMessageOf(msg)
	if err != nil {
		return nil, err
	}
	return decodeRecord(l, m.Subject, m.Seq, m.Time, m.Header.Get(header), m.Data)
}

// LastValue reads the value of a key of a bucket, and its revision. value is nil if the key has none.
// Unlike a read of the bucket, which a replica may answer, it returns what was written before.
func (l *Log) LastValue(ctx context.Context, kv jetstream.KeyValue, key string) (value []byte, revision uint64, err error) {
	m, err := l.askStream(ctx, "KV_"+kv.Bucket(), getRequest{LastFor: "$KV." + kv.Bucket() + "." + key})
	if err != nil || m == nil {
		return nil, 0, err
	}
	if m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != "" { // the key was deleted, or has expired
		return nil, m.Seq, nil
	}
	return m.Data, m.Seq, nil
}

// LastRevision reads the revision of the newest change to the keys of a bucket that
// match keys; 0 = there was none. Deletions are changes.
func (l *Log) LastRevision(ctx context.Context, kv jetstream.KeyValue, keys string) (uint64, error) {
	m, err := l.askStream(ctx, "KV_"+kv.Bucket(), getRequest{LastFor: "$KV." + kv.Bucket() + "." + keys})
	if err != nil || m == nil {
		return 0, err
	}
	return m.Seq, nil
}
