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

// snapshotsPerThread bounds how many snapshots of one thread are kept. Readers of a run need it at
// the run's beginning, where an attempt died, and at its end.
const snapshotsPerThread = 4

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
	newest  *lru.Cache[stream.Thread, threadSnapshots] // safe for concurrent use; mu guards its changes
	weight  int                                        // sum over newest, in bytes
	flights map[snapshotKey]*flight                    // computations that are under way
}

// threadSnapshots are the snapshots of a thread in the order of the log. The slice is immutable.
// The snapshots share most of their memory, so their weight is that of the largest.
type threadSnapshots struct {
	snapshots []*Snapshot
	weight    int
}

// snapshotKey identifies a snapshot: a thread, and the sequence of its last record.
type snapshotKey struct {
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
	newest, _ := lru.New[stream.Thread, threadSnapshots](threads + 1) // putLocked evicts after it adds, so one more; New fails only for a size below 1
	return &cache{threads: threads, bytes: bytes, newest: newest, flights: map[snapshotKey]*flight{}}
}

// newestUpTo returns the newest cached snapshot of a thread with a sequence up to seq; nil = none.
// The thread counts as used.
func (c *cache) newestUpTo(t stream.Thread, seq uint64) *Snapshot {
	all, _ := c.newest.Get(t)
	for _, s := range slices.Backward(all.snapshots) {
		if s.Seq <= seq {
			return s
		}
	}
	return nil
}

// remove removes the snapshots of a thread.
func (c *cache) remove(t stream.Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if evicted, ok := c.newest.Peek(t); ok {
		c.newest.Remove(t)
		c.weight -= evicted.weight
	}
}

// put adds a snapshot, and replaces one of the same record.
func (c *cache) put(t stream.Thread, s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(t, s)
}

// putLocked is put under mu. It evicts the oldest snapshots of the thread beyond
// snapshotsPerThread, and then the threads that were used longest ago beyond the bounds.
func (c *cache) putLocked(t stream.Thread, s *Snapshot) {
	old, _ := c.newest.Peek(t)
	i, found := slices.BinarySearchFunc(old.snapshots, s.Seq, func(k *Snapshot, seq uint64) int { return cmp.Compare(k.Seq, seq) })
	later := old.snapshots[i:]
	if found {
		later = later[1:]
	}
	all := slices.Concat(old.snapshots[:i], []*Snapshot{s}, later)
	updated := threadSnapshots{snapshots: all[max(0, len(all)-snapshotsPerThread):]}
	for _, s := range updated.snapshots {
		updated.weight = max(updated.weight, s.weight())
	}
	c.newest.Add(t, updated)
	c.weight += updated.weight - old.weight
	for c.newest.Len() > c.threads || c.weight > c.bytes && c.newest.Len() > 1 {
		_, evicted, _ := c.newest.RemoveOldest()
		c.weight -= evicted.weight
	}
}

// getOrCompute returns the snapshot of a key. The first caller computes it and the others wait. If
// the computation fails, for instance because the first caller's context ended, one of the waiting
// callers computes it. The error is that of the caller's own computation, or the cause of ctx.
func (c *cache) getOrCompute(ctx context.Context, key snapshotKey, compute func() (*Snapshot, error)) (*Snapshot, error) {
	for {
		if s := c.newestUpTo(key.thread, key.seq); s != nil && s.Seq == key.seq {
			return s, nil
		}
		c.mu.Lock()
		f := c.flights[key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			c.flights[key] = f
			c.mu.Unlock()
			return c.computeFlight(key, f, compute)
		}
		c.mu.Unlock()
		select {
		case <-f.done:
			if f.snapshot != nil {
				return f.snapshot, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// computeFlight computes a snapshot, keeps it, and hands it to the callers that wait. It ends the
// flight even if compute panics, so that no caller waits for ever.
func (c *cache) computeFlight(key snapshotKey, f *flight, compute func() (*Snapshot, error)) (*Snapshot, error) {
	var s *Snapshot
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s != nil {
			c.putLocked(key.thread, s)
		}
		f.snapshot = s
		delete(c.flights, key)
		close(f.done)
	}()
	var err error
	s, err = compute()
	return s, err
}

// entryBytes is about how many bytes an entry takes without its content.
const entryBytes = 512

// runBytes is about how many bytes the note of a run takes.
const runBytes = 256

// weight is about how many bytes of memory a snapshot takes. Small fields are not counted.
func (s *Snapshot) weight() int {
	n := len(s.State) + len(s.ByAgents) + len(s.Journal.Committed) + len(s.Journal.ByAgents) + runBytes*len(s.Runs)
	for _, c := range s.Journal.Changes {
		n += len(c.Event)
	}
	for _, p := range s.Pending {
		n += messageWeight(p.Message)
	}
	for _, e := range s.Entries {
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
