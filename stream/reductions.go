package stream

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// keptReductions bounds how many reductions of one thread are kept: readers of one run ask for it as it
// was when the run began, where an attempt died, and as it is.
const keptReductions = 4

// reductions keeps the newest reductions of the threads used last, and lets those who ask for the same
// one at the same time wait for the first of them.
type reductions struct {
	mu      sync.Mutex
	newest  *lru.Cache[Thread, []*Reduction] // in the order of the log; the slices are immutable
	flights map[place]*flight
}

// place is a record of a thread.
type place struct {
	thread Thread
	seq    uint64
}

// flight is a reduction that is being made; it is set, if it could be made, when done is closed.
type flight struct {
	done      chan struct{}
	reduction *Reduction
}

func newReductions(threads int) (*reductions, error) {
	newest, err := lru.New[Thread, []*Reduction](threads)
	if err != nil {
		return nil, fmt.Errorf("stream: reductions: %w", err)
	}
	return &reductions{newest: newest, flights: map[place]*flight{}}, nil
}

// upTo returns the newest reduction of a thread that is kept and not newer than a record; nil = none.
func (c *reductions) upTo(t Thread, seq uint64) *Reduction {
	kept, _ := c.newest.Get(t)
	for _, r := range slices.Backward(kept) {
		if r.Seq <= seq {
			return r
		}
	}
	return nil
}

// keep adds a reduction, in the place of one of the same record.
func (c *reductions) keep(t Thread, r *Reduction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(t, r)
}

func (c *reductions) add(t Thread, r *Reduction) {
	kept, _ := c.newest.Peek(t)
	at, same := slices.BinarySearchFunc(kept, r.Seq, func(k *Reduction, seq uint64) int { return cmp.Compare(k.Seq, seq) })
	rest := kept[at:]
	if same {
		rest = rest[1:]
	}
	kept = slices.Concat(kept[:at], []*Reduction{r}, rest)
	c.newest.Add(t, kept[max(0, len(kept)-keptReductions):])
}

// share returns the reduction at a place. The first who asks makes it; who comes meanwhile waits for
// that, and only if it fails, maybe by the first one's impatience, is the next to try.
func (c *reductions) share(ctx context.Context, at place, reduce func() (*Reduction, error)) (*Reduction, error) {
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
			if under.reduction != nil {
				return under.reduction, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *reductions) fly(at place, under *flight, reduce func() (*Reduction, error)) (*Reduction, error) {
	var r *Reduction
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r != nil {
			c.add(at.thread, r)
		}
		under.reduction = r
		delete(c.flights, at)
		close(under.done)
	}()
	var err error
	r, err = reduce()
	return r, err
}
