package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

const (
	// maxQueued bounds the entries that wait for the writer; further callers of Record wait. A
	// block has at most maxBlock entries and about maxBlockBytes bytes.
	maxQueued     = 1024
	maxBlock      = 256
	maxBlockBytes = 256 << 10
	// maxHeads bounds the chains whose last entry a writer keeps in memory.
	maxHeads = 10_000
	// publishTimeout bounds one request to NATS.
	publishTimeout = 2 * time.Second
	// maxConflicts bounds how often a block is written again because another process has appended
	// to the chain.
	maxConflicts = 50
)

// ErrClosed tells that the writer was closed.
var ErrClosed = errors.New("audit: the writer is closed")

// Writer appends entries. Entries that arrive while a block is being written form the next block,
// so the cost of a burst is that of a few messages. It is safe for concurrent use.
type Writer struct {
	log    *Log
	now    func() time.Time
	export func(context.Context, Chain, *audit.Entry) // see Export
	queue  chan *request
	closed chan struct{} // closed by Close
	once   sync.Once
	ended  sync.WaitGroup
	heads  *lru.Cache[Chain, head] // used by one goroutine only
}

// head is the end of a chain: its last entry, and the sequence of the last block.
type head struct {
	audit.Head

	seq uint64
}

// request is an entry that waits to be written.
type request struct {
	ctx   context.Context
	chain Chain
	entry *audit.Entry
	done  chan error // has room for the one result
}

// NewWriter returns a writer, and starts its goroutine. The caller must call Close.
func NewWriter(l *Log) (*Writer, error) {
	heads, err := lru.New[Chain, head](maxHeads)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	w := &Writer{log: l, now: time.Now, export: exporter(), queue: make(chan *request, maxQueued), closed: make(chan struct{}), heads: heads}
	w.ended.Go(w.write)
	return w, nil
}

// Close ends the writer, after the entries for which Record waits. Later calls of Record return
// ErrClosed.
func (w *Writer) Close() {
	w.once.Do(func() { close(w.closed) })
	w.ended.Wait()
}

// Record appends an entry to a chain, and returns when it is durable. If it fails, the entry may be
// in the chain or not. The caller must not use the entry afterwards. Errors: ErrClosed,
// stream.ErrUnavailable, the cause of ctx.
func (w *Writer) Record(ctx context.Context, c Chain, e audit.Entry) error {
	e.Time = w.now().UTC()
	r := &request{ctx: ctx, chain: c, entry: &e, done: make(chan error, 1)}
	select {
	case <-w.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case w.queue <- r:
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.closed:
		w.ended.Wait() // the writer answers what it finds in the queue
		select {
		case err := <-r.done:
			return err
		default:
			return ErrClosed
		}
	}
}

// write writes blocks until the writer is closed and the queue is empty.
func (w *Writer) write() {
	for {
		select {
		case r := <-w.queue:
			w.writeAll(w.gather(r))
		case <-w.closed:
			select {
			case r := <-w.queue:
				w.writeAll(w.gather(r))
			default:
				return
			}
		}
	}
}

// gather returns the requests that wait, by their chains; first is one of them.
func (w *Writer) gather(first *request) map[Chain][]*request {
	waiting := map[Chain][]*request{first.chain: {first}}
	for range maxQueued {
		select {
		case r := <-w.queue:
			waiting[r.chain] = append(waiting[r.chain], r)
		default:
			return waiting
		}
	}
	return waiting
}

// writeAll writes the requests of all chains. Chains are written concurrently, the blocks of one
// chain one after the other.
func (w *Writer) writeAll(waiting map[Chain][]*request) {
	var wait sync.WaitGroup
	for chain, requests := range waiting {
		wait.Go(func() {
			for len(requests) > 0 {
				n := min(len(requests), maxBlock)
				n = w.writeBlock(chain, requests[:n])
				requests = requests[n:]
			}
		})
	}
	wait.Wait()
}

// writeBlock writes one block of the first requests and answers them. It returns how many these are:
// a block that would be too large has fewer.
func (w *Writer) writeBlock(c Chain, requests []*request) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*publishTimeout)
	defer cancel()
	n, err := w.appendBlock(ctx, c, requests)
	for _, r := range requests[:n] {
		if err == nil {
			w.export(r.ctx, c, r.entry)
		}
		r.done <- err
	}
	return n
}

// appendBlock appends the requests that fit into one block, and returns how many these are. Another
// process may append to the chain concurrently: then it reads the new head, and tries again.
func (w *Writer) appendBlock(ctx context.Context, c Chain, requests []*request) (n int, err error) {
	h, known := w.heads.Get(c)
	for range maxConflicts {
		if !known {
			if h, err = w.log.readHead(ctx, c); err != nil {
				return len(requests), err
			}
		}
		var data []byte
		var next audit.Head
		if data, n, next, err = encodeBlock(h.Head, requests); err != nil {
			return n, err
		}
		seq, err := w.log.publish(ctx, c, data, h.seq)
		switch {
		case err == nil:
			w.heads.Add(c, head{next, seq})
			return n, nil
		case !stream.IsConflict(err):
			// The block may be in the log or not, so the head is unknown.
			w.heads.Remove(c)
			return n, fmt.Errorf("audit: %w: %w", stream.ErrUnavailable, err)
		}
		// The block before may be one of this writer, whose acknowledgement was lost: the callers
		// were told that it is unknown whether their entries were written.
		known = false
	}
	w.heads.Remove(c)
	return n, fmt.Errorf("audit: %w: %d other writers were faster", stream.ErrUnavailable, maxConflicts)
}

// encodeBlock returns the block of the first requests after a head, how many these are, and the new
// head.
func encodeBlock(h audit.Head, requests []*request) (data []byte, n int, next audit.Head, err error) {
	var lines bytes.Buffer
	next = h
	for n = 0; n < len(requests) && (n == 0 || lines.Len() < maxBlockBytes); n++ {
		var raw []byte
		if raw, next, err = next.Append(requests[n].entry); err != nil {
			return nil, n + 1, h, err
		}
		if n > 0 {
			lines.WriteByte('\n')
		}
		lines.Write(raw)
	}
	return lines.Bytes(), n, next, nil
}

// readHead returns the end of a chain.
func (l *Log) readHead(ctx context.Context, c Chain) (head, error) {
	b, err := l.last(ctx, c)
	if b == nil || err != nil {
		return head{}, err
	}
	e, err := b.lastEntry()
	if err != nil {
		return head{}, err
	}
	return head{audit.HeadOf(e.Number, b.raw[len(b.raw)-1]), b.seq}, nil
}

// publish appends a block to a chain whose last block has the sequence expected.
func (l *Log) publish(ctx context.Context, c Chain, data []byte, expected uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	msg := &nats.Msg{Subject: l.subject(c), Data: data}
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err //nolint:wrapcheck // appendBlock does
	}
	return ack.Sequence, nil
}
