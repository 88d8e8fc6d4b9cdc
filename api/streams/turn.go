package streams

import (
	"context"
	"sync"
)

// maxTurns bounds how many streams of a tenant read the past of their thread concurrently before
// they send their first frame, together with the traces that are read. The snapshot of a large thread
// and the trace of a long run take much memory and time, and a tenant may open thousands of streams
// at once.
const maxTurns = 8

// turns are the turns of all tenants. It is safe for concurrent use.
type turns struct {
	mu    sync.Mutex
	queue map[string]*queue // by tenant; without tenants that have no stream in it
}

// queue has the streams of one tenant that have a turn or wait for one.
type queue struct {
	taken   chan struct{} // has an element for each turn
	streams int
}

// take waits for a turn of a tenant. After nil, the caller calls end. The error is the cause of ctx.
func (t *turns) take(ctx context.Context, tenant string) (end func(), err error) {
	t.mu.Lock()
	q := t.queue[tenant]
	if q == nil {
		q = &queue{taken: make(chan struct{}, maxTurns)}
		t.queue[tenant] = q
	}
	q.streams++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.streams--; q.streams == 0 {
			delete(t.queue, tenant)
		}
	}
	select {
	case q.taken <- struct{}{}:
		return func() { <-q.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
