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

// perThread bounds how many reductions of one thread are kept: readers of one run ask for it as it
// was when the run began, where an attempt died, and as it is.
const perThread = 4

// cacheBytes bounds what is kept in memory of all threads together: they are as large as their clients
// make them. The thread that was used last stays in any case.
const cacheBytes = 64 << 20

// cacheThreads bounds of how many threads snapshots are kept.
const cacheThreads = 256

// cache keeps the newest reductions of the threads used last, and lets those who ask for the same
// one at the same time wait for the first of them.
type cache struct {
	threads, bytes int // as many at most

	mu      sync.Mutex
	newest  *lru.Cache[stream.Thread, cached]
	weight  int // of all that are kept
	flights map[place]*flight
}

// cached are the reductions of a thread in the order of the log; the slice is immutable. They share most
// of what they hold, so that the largest is what they weigh together.
type cached struct {
	snapshots []*Snapshot
	weight    int
}

// place is a record of a thread.
type place struct {
	thread stream.Thread
	seq    uint64
}

// flight is a reduction that is being made; it is set, if it could be made, when done is closed.
type flight struct {
	done     chan struct{}
	snapshot *Snapshot
}

func newCache(threads, bytes int) *cache {
	newest, _ := lru.New[stream.Thread, cached](threads + 1) // one more than are kept; it fails only for a size below 1
	return &cache{threads: threads, bytes: bytes, newest: newest, flights: map[place]*flight{}}
}

// upTo returns the newest reduction of a thread that is kept and not newer than a record; nil = none.
func (c *cache) upTo(t stream.Thread, seq uint64) *Snapshot {
	all, _ := c.newest.Get(t)
	for _, r := range slices.Backward(all.snapshots) {
		if r.Seq <= seq {
			return r
		}
	}
	return nil
}

// forget lets go of what is kept of a thread.
func (c *cache) forget(t stream.Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone, ok := c.newest.Peek(t); ok {
		c.newest.Remove(t)
		c.weight -= gone.weight
	}
}

// keep adds a reduction, in the place of one of the same record.
func (c *cache) keep(t stream.Thread, r *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(t, r)
}

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

// share returns the reduction at a place. The first who asks makes it; who comes meanwhile waits for
// that, and only if it fails, maybe by the first one's impatience, is the next to try.
func (c *cache) share(ctx context.Context, at place, reduce func() (*Snapshot, error)) (*Snapshot, error) {
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
			return c.fly(at, under, reduce)
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

func (c *cache) fly(at place, under *flight, reduce func() (*Snapshot, error)) (*Snapshot, error) {
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
	r, err = reduce()
	return r, err
}

// entryBytes is what an entry takes beside its content, roughly.
const entryBytes = 512

// runBytes is what the note of a run takes, roughly.
const runBytes = 256

// weight is about how many bytes a reduction takes.
func (r *Snapshot) weight() int {
	n := len(r.State) + len(r.Journal.Settled) + runBytes*len(r.Runs)
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
