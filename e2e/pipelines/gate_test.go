package pipelines

import (
	"context"
	"sync"
)

// gates holds requests with the text "halt" until their gate opens or the caller disconnects. It is
// safe for concurrent use.
type gates struct {
	mu  sync.Mutex
	all map[string]*gate // by order
}

type gate struct {
	reached, opened chan struct{}
	once            sync.Once
}

// newGates returns gates for orders.
func newGates() *gates { return &gates{all: map[string]*gate{}} }

// gate returns the gate of an order.
func (g *gates) gate(order string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all[order] == nil {
		g.all[order] = &gate{reached: make(chan struct{}), opened: make(chan struct{})}
	}
	return g.all[order]
}

// before holds a request at its gate.
func (g *gates) before(ctx context.Context, r *request) bool {
	if r.what != "halt" {
		return true
	}
	at := g.gate(r.order)
	at.once.Do(func() { close(at.reached) })
	select {
	case <-at.opened:
		return true
	case <-ctx.Done():
		return false
	}
}
