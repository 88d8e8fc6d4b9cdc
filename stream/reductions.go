package stream

import (
	"context"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/perdure/perdure/agui"
)

// reductionBytes bounds what the reductions in memory may weigh together: threads are as large as their
// clients make them. The one that was used last stays in any case.
const reductionBytes = 64 << 20

// reductionCache keeps the newest reduction of the threads used last. It is safe for concurrent use.
type reductionCache struct {
	newest         *lru.Cache[Thread, weighed]
	threads, bytes int // as many at most

	keeping sync.Mutex
	weight  int // of all that are kept
}

// weighed is a reduction and what it was counted as.
type weighed struct {
	*Reduction
	weight int
}

func newReductionCache(threads, bytes int) (*reductionCache, error) {
	c, err := lru.New[Thread, weighed](threads + 1) // so that it is us who take the oldest out
	if err != nil {
		return nil, fmt.Errorf("stream: reductions: %w", err)
	}
	return &reductionCache{newest: c, threads: threads, bytes: bytes}, nil
}

// keep keeps a reduction unless there is one as new.
func (c *reductionCache) keep(t Thread, r *Reduction) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	if old, ok := c.newest.Peek(t); !ok || old.Seq < r.Seq {
		c.put(t, r)
	}
}

// replace keeps a reduction, whatever there is.
func (c *reductionCache) replace(t Thread, r *Reduction) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.put(t, r)
}

func (c *reductionCache) put(t Thread, r *Reduction) {
	old, _ := c.newest.Peek(t)
	now := weighed{r, r.weight()}
	c.newest.Add(t, now)
	c.weight += now.weight - old.weight
	for c.newest.Len() > c.threads || c.weight > c.bytes && c.newest.Len() > 1 {
		_, gone, _ := c.newest.RemoveOldest()
		c.weight -= gone.weight
	}
}

// base returns the newest reduction at hand that is not newer than a record.
func (c *reductionCache) base(ctx context.Context, l *Log, t Thread, seq uint64) *Reduction {
	if r, ok := c.newest.Get(t); ok && r.Seq <= seq {
		return r.Reduction
	}
	if r := l.loadCheckpoint(ctx, t); r != nil && r.Seq <= seq {
		return r
	}
	return &Reduction{State: emptyState}
}

// entryBytes is what an entry takes beside its content, roughly.
const entryBytes = 512

// weight is about how many bytes a reduction takes.
func (r *Reduction) weight() int {
	n := len(r.State) + len(r.Journal.Settled)
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
