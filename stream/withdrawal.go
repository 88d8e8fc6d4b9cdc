package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// This file removes the content of proposals that were refused. Concurrent requests with the same
// content share a proposal, and a workflow may accept it for one of them after it has refused it for
// another. So the lane of a proposal tells how many requests may use it:
//
//	proposal                      the request that wrote it
//	proposal, claim               several requests: it is never withdrawn
//	proposal, withdrawal, …       none: the next request writes the content again
//
// Claim and withdrawal are both written with the proposal as the expected last record, so only one of
// them follows it. All three are records of KindProposal, and have no effect.
//
// After the withdrawal, the record of the proposal is erased. Readers may have its sequence as the end
// of the thread. The withdrawal follows it in the same lane, so a read up to that sequence ends there.
// Missing tells an erased record from one of a purged thread.

// Steps of the records that follow a proposal. That of a claim has the proposal's sequence.
const (
	claimStep      = "claim:"
	withdrawalStep = "withdrawn"
)

// Withdraw erases a proposal that a workflow has definitely refused, and its blob, if no other request
// uses the proposal. It must be called only by the request that proposed it, at most once, and not
// after a failure with an unknown outcome. The first record of a thread stays, because it has the
// thread's owner.
func (l *Log) Withdraw(ctx context.Context, p Proposal) error {
	rec, err := l.At(ctx, p.Seq)
	if err != nil || rec == nil {
		return err
	}
	lines, err := rec.storedLines(ctx)
	if err != nil {
		return err
	}
	first, err := l.First(ctx, rec.thread+".>", 1)
	if err != nil || first.Sequence() == p.Seq {
		return err
	}
	err = l.follow(ctx, rec.thread+"."+rec.run+"."+string(rec.Lane), withdrawalStep, p.Seq)
	if errors.Is(err, ErrFenced) {
		return nil // another request uses the proposal
	}
	if err != nil {
		return err
	}
	for _, line := range lines {
		var ref reference
		if !bytes.HasPrefix(line, referencePrefix) {
			continue
		}
		if err := json.Unmarshal(line, &ref); err != nil {
			return fmt.Errorf("stream: reference: %w", err)
		}
		if err := l.PurgeBlob(ctx, ref.Blob); err != nil {
			return err
		}
		key := l.blobKey(rec.thread, ref.Blob[len(rec.thread)+1:])
		if err := l.index.Purge(ctx, key, jetstream.PurgeTTL(markerTTL)); err != nil {
			return fmt.Errorf("stream: purge blob: %w", asUnavailable(err))
		}
	}
	return l.erase(ctx, p.Seq)
}

// erase overwrites and removes the record with a sequence; it succeeds if there is none.
func (l *Log) erase(ctx context.Context, seq uint64) error {
	s, err := l.js.Stream(ctx, l.name)
	if err == nil {
		err = s.SecureDeleteMsg(ctx, seq)
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("stream: erase record %d: %w", seq, asUnavailable(err))
	}
	return nil
}

// follow writes a claim or a withdrawal after the record of a proposal. The error is ErrFenced if the
// lane ends with another record.
func (l *Log) follow(ctx context.Context, subject, step string, after uint64) error {
	s := stamp{kind: KindProposal, step: step, writer: newWriter("")}
	msg, err := l.message(ctx, subject, s, nil, []byte("{}"))
	if err != nil {
		return err
	}
	_, err = l.append(ctx, msg, s, after)
	return err
}

// join returns the sequence of the proposal that the lane of an equal one has, and claims it. It
// returns 0 if the lane's proposal was withdrawn; then a new one may follow the record after.
func (l *Log) join(ctx context.Context, subject string) (seq, after uint64, err error) {
	for {
		last, err := l.Last(ctx, subject)
		if err != nil || last == nil {
			return 0, 0, err
		}
		if claimed, ok := bytes.CutPrefix([]byte(last.Step), []byte(claimStep)); ok {
			seq, err := strconv.ParseUint(string(claimed), 10, 64)
			return seq, last.Seq, err
		}
		if last.Step == withdrawalStep {
			return 0, last.Seq, nil
		}
		err = l.follow(ctx, subject, claimStep+strconv.FormatUint(last.Seq, 10), last.Seq)
		if !errors.Is(err, ErrFenced) {
			return last.Seq, last.Seq, err
		}
	}
}
