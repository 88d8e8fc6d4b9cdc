package e2e

import (
	"context"
	"sync"
)

// halts stops those requests that are for a halt, until they may go on or whoever asks is gone. It
// is safe for concurrent use.
type halts struct {
	mu  sync.Mutex
	all map[string]*halt // by order
}

type halt struct {
	came, opened chan struct{}
	once         sync.Once
}

func newHalts() *halts { return &halts{all: map[string]*halt{}} }

func (h *halts) of(order string) *halt {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[order] == nil {
		h.all[order] = &halt{came: make(chan struct{}), opened: make(chan struct{})}
	}
	return h.all[order]
}

func (h *halts) before(ctx context.Context, d *deed) bool {
	if d.what != "halt" {
		return true
	}
	at := h.of(d.order)
	at.once.Do(func() { close(at.came) })
	select {
	case <-at.opened:
		return true
	case <-ctx.Done():
		return false
	}
}
