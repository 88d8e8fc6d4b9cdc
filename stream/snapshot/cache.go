package snapshot

import (
	"cmp"
	"context"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// perThread bounds how many snapshots of one thread are kept. Readers of a run need it at the run's
// beginning, where an attempt died, and at its end.
const perThread = 4

// cacheBytes bounds the memory of all snapshots together, by their weight, since clients decide how
// large a thread is. The thread that was used last is kept, whatever its weight.
const cacheBytes = 64 << 20

// cacheThreads bounds the number of threads with snapshots in memory.
const cacheThreads = 256

// cache keeps the newest snapshots of the threads that were used last. Concurrent callers that need
// the same snapshot share its computation. It is safe for concurrent use.
type cache struct {
	threads, bytes int // bounds

	mu      sync.Mutex
	newest  *lru.Cache[stream.Thread, cached] // safe for concurrent use; mu guards its changes
	weight  int                               // sum over newest, in bytes
	flights map[place]*flight                 // computations that are under way
}

// cached are the snapshots of a thread in the order of the log. The slice is immutable. The
// snapshots share most of their memory, so their weight is that of the largest.
type cached struct {
	snapshots []*Snapshot
	weight    int
}

// place is a record of a thread.
type place struct {
	thread stream.Thread
	seq    uint64
}

// flight is a computation of a snapshot that callers share. snapshot is set before done is closed;
// nil = the computation has failed.
type flight struct {
	done     chan struct{}
	snapshot *Snapshot
}

// newCache returns an empty cache for so many threads, and so many bytes.
func newCache(threads, bytes int) *cache {
	newest, _ := lru.New[stream.Thread, cached](threads + 1) // add evicts after it adds, so one more; New fails only for a size below 1
	return &cache{threads: threads, bytes: bytes, newest: newest, flights: map[place]*flight{}}
}

// upTo returns the newest cached snapshot of a thread with a sequence up to seq; nil = none. The
// thread counts as used.
func (c *cache) upTo(t stream.Thread, seq uint64) *Snapshot {
	all, _ := c.newest.Get(t)
	for _, r := range slices.Backward(all.snapshots) {
		if r.Seq <= seq {
			return r
		}
	}
	return nil
}

// remove removes the snapshots of a thread.
func (c *cache) remove(t stream.Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone, ok := c.newest.Peek(t); ok {
		c.newest.Remove(t)
		c.weight -= gone.weight
	}
}

// keep adds a snapshot, and replaces one of the same record.
func (c *cache) keep(t stream.Thread, r *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(t, r)
}

// add is keep under mu. It evicts the oldest snapshots of the thread beyond perThread, and then the
// threads that were used longest ago beyond the bounds.
func (c *cache) add(t stream.Thread, r *Snapshot) {
	old, _ := c.newest.Peek(t)
	at, same := slices.BinarySearchFunc(old.snapshots, r.Seq, func(k *Snapshot, seq uint64) int { return cmp.Compare(k.Seq, seq) })
	rest := old.snapshots[at:]
	if same {
		rest = rest[1:]
	}
	all := slices.Concat(old.snapshots[:at], []*Snapshot{r}, rest)
	now := cached{snapshots: all[max(0, len(all)-perThread):]}
	for _, r := range now.snapshots {
		now.weight = max(now.weight, r.weight())
	}
	c.newest.Add(t, now)
	c.weight += now.weight - old.weight
	for c.newest.Len() > c.threads || c.weight > c.bytes && c.newest.Len() > 1 {
		_, gone, _ := c.newest.RemoveOldest()
		c.weight -= gone.weight
	}
}

// share returns the snapshot at a place. The first caller computes it and the others wait. If the
// computation fails, for instance because the first caller's context ended, one of the waiting
// callers computes it. The error is that of the caller's own computation, or the cause of ctx.
func (c *cache) share(ctx context.Context, at place, compute func() (*Snapshot, error)) (*Snapshot, error) {
	for {
		if r := c.upTo(at.thread, at.seq); r != nil && r.Seq == at.seq {
			return r, nil
		}
		c.mu.Lock()
		under := c.flights[at]
		if under == nil {
			under = &flight{done: make(chan struct{})}
			c.flights[at] = under
			c.mu.Unlock()
			return c.fly(at, under, compute)
		}
		c.mu.Unlock()
		select {
		case <-under.done:
			if under.snapshot != nil {
				return under.snapshot, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fly computes a snapshot, keeps it, and hands it to the callers that wait. It ends the flight even
// if compute panics, so that no caller waits for ever.
func (c *cache) fly(at place, under *flight, compute func() (*Snapshot, error)) (*Snapshot, error) {
	var r *Snapshot
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r != nil {
			c.add(at.thread, r)
		}
		under.snapshot = r
		delete(c.flights, at)
		close(under.done)
	}()
	var err error
	r, err = compute()
	return r, err
}

// entryBytes is about how many bytes an entry takes without its content.
const entryBytes = 512

// runBytes is about how many bytes the note of a run takes.
const runBytes = 256

// weight is about how many bytes of memory a snapshot takes. Small fields are not counted.
func (r *Snapshot) weight() int {
	n := len(r.State) + len(r.Journal.Committed) + runBytes*len(r.Runs)
	for _, c := range r.Journal.Changes {
		n += len(c.Event)
	}
	for _, p := range r.Pending {
		n += messageWeight(p.Message)
	}
	for _, e := range r.Entries {
		n += messageWeight(e.Message)
	}
	return n
}

// messageWeight is about how many bytes of memory a message takes.
func messageWeight(m agui.Message) int {
	n := entryBytes + len(m.ID) + len(m.Content.Object()) + len(m.EncryptedValue) + len(m.Error)
	if m.Content.IsText() {
		n += len(m.Content.Text())
	}
	for _, c := range m.ToolCalls {
		n += len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	for _, p := range m.Content.Parts() {
		n += len(p.Text)
		if p.Source != nil {
			n += len(p.Source.Value)
		}
	}
	return n
}
