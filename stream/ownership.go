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

// A thread belongs to the principal whose request is its first record: the requester of its first
// input, or the caller that forked it. The owner is part of that record, so the API writes nothing
// else, and JetStream decides which of two concurrent requests begins the thread (beginThread).
//
// The owner may share the thread. Only the thread's entry in the index has the shares: one
// compare-and-swap changes them. If the bucket of the index is lost, the shares are lost, and
// RestoreIndex makes all threads private.

// ErrNotListed tells that no run of the thread has begun, so the thread has no entry in the index.
var ErrNotListed = errors.New("stream: no run of the thread has begun")

// AccessOf returns who may use a thread; nil = the log does not have the thread. Nobody may use a
// thread whose purge has not ended: a run would continue what is to be removed. Errors:
// ErrUnfinishedPurge, ErrUnavailable.
func (l *Log) AccessOf(ctx context.Context, t Thread) (*Access, error) {
	entry, _, err := l.readEntry(ctx, l.indexKey(l.ThreadSubject(t)))
	if err != nil {
		return nil, err
	}
	if entry.Seq > 0 && !entry.Purged {
		return &entry.Access, nil
	}
	first, err := l.First(ctx, l.ThreadSubject(t)+".>", 1)
	if first == nil || err != nil {
		return nil, err
	}
	if entry.Unfinished && first.Seq <= entry.Seq { // later records are those of a new thread
		return nil, ErrUnfinishedPurge
	}
	owner, _, err := first.owner(ctx)
	return &Access{Owner: owner}, err
}

// Share replaces the shares of a thread, in its entry of the index. The entry is written when the
// thread's first run begins; Share waits for it at most listingTimeout. Errors: ErrNotListed.
func (l *Log) Share(ctx context.Context, t Thread, shares []Share) (*Access, error) {
	return l.ChangeShares(ctx, t, func([]Share) []Share { return shares })
}

// ChangeShares is Share with shares that depend on those before. It calls change again if the entry
// has changed concurrently. change must not change its argument.
func (l *Log) ChangeShares(ctx context.Context, t Thread, change func([]Share) []Share) (*Access, error) {
	entry, err := l.changeEntry(ctx, t, func(entry *IndexEntry) bool { entry.Shares = change(entry.Shares); return true })
	if err != nil {
		return nil, err
	}
	return &entry.Access, nil
}

// changeEntry changes the entry of a thread and returns it. The entry is written when the thread's
// first run begins; changeEntry waits for it at most listingTimeout. It calls change again if the
// entry has changed concurrently, and writes nothing if change returns false. Errors: ErrNotListed.
func (l *Log) changeEntry(ctx context.Context, t Thread, change func(*IndexEntry) bool) (*IndexEntry, error) {
	key := l.indexKey(l.ThreadSubject(t))
	deadline := time.Now().Add(listingTimeout)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		entry, revision, err := l.readEntry(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case entry.Purged, entry.Seq == 0 && time.Now().After(deadline):
			return nil, ErrNotListed
		case entry.Seq > 0:
			if !change(&entry) {
				return &entry, nil
			}
			if err := l.replaceEntry(ctx, t, &entry, revision); err == nil || isPermanent(err) {
				return &entry, err
			}
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// listingTimeout is how long changeEntry waits for the entry of a thread.
const listingTimeout = 2 * time.Second

// replaceEntry writes an entry in place of the one with a revision.
func (l *Log) replaceEntry(ctx context.Context, t Thread, entry *IndexEntry, revision uint64) error {
	threadSubject := l.ThreadSubject(t)
	key := l.indexKey(threadSubject)
	body, err := l.encodeEntry(ctx, threadSubject, key, entry)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(l.indexSubject(key))
	msg.Data = body
	_, err = l.publish(ctx, msg, revision)
	return err
}

// beginEntry adds to the first entry of a thread what its first record tells: the time, the owner,
// the owner's tenant if its token is a digest, and the description. Without that record the owner is nil.
func (l *Log) beginEntry(ctx context.Context, threadSubject string, entry *IndexEntry) error {
	first, err := l.First(ctx, threadSubject+".>", 1)
	if first == nil || err != nil {
		return err
	}
	owner, tenant, err := first.owner(ctx)
	entry.Owner, entry.Tenant, entry.CreatedAt = owner, "", first.Time.UTC().Truncate(time.Millisecond)
	if Token(tenant) != tenant {
		entry.Tenant = tenant
	}
	if err != nil {
		return err
	}
	description, err := first.description(ctx)
	entry.Description = description.updated(entry.Description)
	return err
}

// owner returns the owner of the thread that begins with this record, and the owner's tenant; nil =
// no thread begins with such a record, so earlier ones are missing.
func (r *Record) owner(ctx context.Context) (owner *string, tenant string, err error) {
	if r.Kind != KindProposal && r.Kind != KindFork {
		return nil, "", nil
	}
	var first struct {
		// CallID is set if the record is a decision.
		CallID    string                            `json:"call"`
		Requester *struct{ Subject, Tenant string } `json:"requester"`
	}
	if err := r.Result(ctx, &first); err != nil {
		return nil, "", err
	}
	if first.CallID != "" {
		return nil, "", nil
	}
	if first.Requester == nil {
		return new(string), "", nil
	}
	return &first.Requester.Subject, first.Requester.Tenant, nil
}

// beginThread writes the first record of a thread, and returns its sequence. If the thread has a
// record, for instance a proposed input, it writes nothing and returns the thread's first record:
// the fence is the last sequence of all subjects of the thread, not only of one lane. After an
// unclear answer that record may be the caller's own. beginThread retries during outages until ctx
// ends.
func (l *Log) beginThread(ctx context.Context, t Thread, msg *nats.Msg) (seq uint64, first *Record, err error) {
	all := l.ThreadSubject(t) + ".>"
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		seq, err = l.publishFirst(ctx, msg, all)
		if err == nil {
			return seq, nil, nil
		}
		if isPermanent(err) {
			return 0, nil, fmt.Errorf("stream: begin thread: %w", asUnavailable(err))
		}
		if !isWrongLastSequence(err) {
			if err := durations.Sleep(ctx, pause); err != nil {
				return 0, nil, err
			}
		}
		first, err = l.First(ctx, all, 1)
		if first != nil || err != nil && !errors.Is(err, ErrUnavailable) {
			return first.Sequence(), first, err
		}
	}
}

// publishFirst sends a message that must be the first under a subject with wildcards, and waits at
// most publishTimeout for the acknowledgement.
func (l *Log) publishFirst(ctx context.Context, msg *nats.Msg, under string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequenceForSubject(0, under), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
