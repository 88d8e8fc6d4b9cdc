package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

// Filter selects entries of a chain. Zero members select all.
type Filter struct {
	// After selects entries with a higher number, and Before those with a lower one; 0 = all.
	After, Before uint64
	// Since and Until bound the time: Since ≤ time < Until.
	Since, Until time.Time
	Action       audit.Action
	Outcome      audit.Outcome
	// Subject is that of the actor.
	Subject string
	Thread  string
}

// matches reports whether an entry between f.After and f.Before passes the filter, apart from Until.
func (f *Filter) matches(e *audit.Entry) bool {
	return !e.Time.Before(f.Since) &&
		(f.Action == "" || f.Action == e.Action) &&
		(f.Outcome == "" || f.Outcome == e.Outcome) &&
		(f.Subject == "" || e.Actor != nil && f.Subject == e.Actor.Subject) &&
		(f.Thread == "" || f.Thread == e.Thread)
}

// Page is a part of a chain, oldest or newest entries first.
type Page struct {
	// Entries are the stored bytes of the selected entries.
	Entries []json.RawMessage
	// Next is the value of Filter.After (oldest first) or Filter.Before (newest first) for the next
	// page; 0 = there are no further entries now. A page may have no entries and a next page,
	// because it has read MaxScanned entries.
	Next uint64
}

// MaxScanned bounds the entries that one page reads.
const MaxScanned = 10_000

// fetchSize is how many blocks are fetched at a time.
const fetchSize = 200

// Page returns up to limit entries of a chain, oldest first. It ignores f.Before. Entries that are
// appended meanwhile may be missing. Errors: stream.ErrUnavailable, the cause of ctx.
func (l *Log) Page(ctx context.Context, c Chain, f Filter, limit int) (Page, error) {
	start, err := l.start(ctx, c, f)
	if err != nil || start == 0 {
		return Page{}, err
	}
	p := Page{Entries: []json.RawMessage{}}
	for scanned := 0; ; {
		blocks, err := l.blocks(ctx, c, start)
		if err != nil {
			return Page{}, err
		}
		for _, b := range blocks {
			start = b.seq + 1
			for _, raw := range b.raw {
				e, err := audit.Decode(raw)
				if err != nil {
					return Page{}, err
				}
				if e.Number <= f.After {
					continue
				}
				if !f.Until.IsZero() && !e.Time.Before(f.Until) {
					return Page{Entries: p.Entries}, nil
				}
				if len(p.Entries) == limit || scanned == MaxScanned {
					return p, nil
				}
				scanned++
				p.Next = e.Number
				if f.matches(e) {
					p.Entries = append(p.Entries, raw)
				}
			}
		}
		if len(blocks) < fetchSize {
			return Page{Entries: p.Entries}, nil
		}
	}
}

// NewestPage returns up to limit entries of a chain, newest first. It ignores f.After. Errors are
// those of Page.
//
// NATS delivers messages in ascending order only, so NewestPage reads windows of ascending entries,
// each before the one that it has read. The numbers of a chain have no gaps.
func (l *Log) NewestPage(ctx context.Context, c Chain, f Filter, limit int) (Page, error) {
	before, err := l.end(ctx, c, f)
	if err != nil {
		return Page{}, err
	}
	p, scanned, window := Page{Entries: []json.RawMessage{}}, 0, limit+1
	for hasEarlier := before > 1; hasEarlier; window = min(2*window, MaxScanned-scanned+1) {
		after := before - 1 - min(uint64(window), before-1)                    //nolint:gosec // never negative
		read, err := l.Page(ctx, c, Filter{After: after}, int(before-1-after)) //nolint:gosec // at most window
		if err != nil {
			return Page{}, err
		}
		hasEarlier = false
		for _, raw := range slices.Backward(read.Entries) {
			e, err := audit.Decode(raw)
			if err != nil {
				return Page{}, err
			}
			if e.Number >= before { // the retention has removed some of the window
				continue
			}
			hasEarlier = e.Number > 1 && e.Number == after+1
			if e.Time.Before(f.Since) {
				return Page{Entries: p.Entries}, nil
			}
			if len(p.Entries) == limit || scanned == MaxScanned {
				return p, nil
			}
			scanned++
			p.Next = e.Number
			if f.matches(e) {
				p.Entries = append(p.Entries, raw)
			}
		}
		before = after + 1
	}
	return Page{Entries: p.Entries}, nil
}

// end returns the number that follows the last entry of the filter; 0 = the chain is empty.
func (l *Log) end(ctx context.Context, c Chain, f Filter) (uint64, error) {
	last, err := l.last(ctx, c)
	if last == nil || err != nil {
		return 0, err
	}
	e, err := last.lastEntry()
	if err != nil {
		return 0, err
	}
	end := e.Number + 1
	if f.Before > 0 {
		end = min(end, f.Before)
	}
	if f.Until.IsZero() {
		return end, nil
	}
	later, err := l.Page(ctx, c, Filter{Since: f.Until}, 1)
	if err != nil || len(later.Entries) == 0 {
		return end, err
	}
	if e, err = audit.Decode(later.Entries[0]); err != nil {
		return 0, err
	}
	return min(end, e.Number), nil
}

// start returns the sequence of the first block that may have entries of the filter; 0 = there is
// none. It is a binary search among the sequences of the stream: numbers and times ascend.
func (l *Log) start(ctx context.Context, c Chain, f Filter) (uint64, error) {
	last, err := l.last(ctx, c)
	if last == nil || err != nil {
		return 0, err
	}
	if f.After == 0 && f.Since.IsZero() {
		return 1, nil
	}
	low, high := uint64(1), last.seq
	for low < high {
		middle := low + (high-low)/2
		b, err := l.from(ctx, c, middle)
		if err != nil {
			return 0, err
		}
		if b == nil { // the block was removed meanwhile
			return 0, nil
		}
		e, err := b.lastEntry()
		if err != nil {
			return 0, err
		}
		if e.Number > f.After && !e.Time.Before(f.Since) {
			high = middle
		} else {
			low = b.seq + 1
		}
	}
	return low, nil
}

// blocks returns up to fetchSize blocks of a chain from a sequence of the stream.
func (l *Log) blocks(ctx context.Context, c Chain, seq uint64) ([]block, error) {
	consumer, err := l.entries.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: l.subject(c), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: seq,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerTTL,
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w: %w", stream.ErrUnavailable, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
		defer cancel()
		_ = l.entries.DeleteConsumer(ctx, consumer.CachedInfo().Name) // otherwise NATS deletes it after consumerTTL
	}()
	batch, err := consumer.FetchNoWait(fetchSize)
	if err != nil {
		return nil, fmt.Errorf("audit: %w: %w", stream.ErrUnavailable, err)
	}
	var list []block
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		list = append(list, decodeBlock(meta.Sequence.Stream, m.Data()))
	}
	if err := batch.Error(); err != nil && !errors.Is(err, jetstream.ErrNoMessages) {
		return nil, fmt.Errorf("audit: %w: %w", stream.ErrUnavailable, err)
	}
	return list, nil
}

// consumerTTL is how long NATS keeps a consumer that nobody uses.
const consumerTTL = 10 * time.Second
