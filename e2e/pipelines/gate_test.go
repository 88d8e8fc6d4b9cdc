package pipelines

import (
	"context"
	"sync"
)

// gates stops those requests that are for a halt, until they may go on or whoever asks is gone. It
// is safe for concurrent use.
type gates struct {
	mu  sync.Mutex
	all map[string]*gate // by order
}

type gate struct {
	came, opened chan struct{}
	once         sync.Once
}

func newGates() *gates { return &gates{all: map[string]*gate{}} }

func (h *gates) of(order string) *gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[order] == nil {
		h.all[order] = &gate{came: make(chan struct{}), opened: make(chan struct{})}
	}
	return h.all[order]
}

func (h *gates) before(ctx context.Context, d *request) bool {
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
