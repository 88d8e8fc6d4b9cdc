package sockets

import (
	"context"
	"sync"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
)

// counter counts the open WebSockets of a node, bounds them, and lets the node wait for the last
// one. http.Server does not know hijacked connections, so it cannot wait for them. It is safe for
// concurrent use.
type counter struct {
	room *quota.Room

	mu       sync.Mutex
	open     int
	draining bool          // set once: no WebSocket may open anymore
	ended    chan struct{} // closed when the last WebSocket has ended after drain; nil = nothing waits
}

// enter counts a WebSocket of a caller, or returns an error: streams.ErrDrain while the node
// drains, a 429 quota_exceeded, or a 503 node_full. After nil the caller calls leave at the end.
func (c *counter) enter(caller auth.Principal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return streams.ErrDrain
	}
	if err := c.room.Enter(caller); err != nil {
		return problem.FullIf(err, "open WebSockets")
	}
	c.open++
	return nil
}

// leave ends what enter has counted.
func (c *counter) leave(caller auth.Principal) {
	c.room.Leave(caller)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.report()
}

// drain makes enter refuse all further WebSockets.
func (c *counter) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
}

// report wakes wait if no WebSocket is open and none can be opened. The caller holds mu.
func (c *counter) report() {
	if c.open == 0 && c.draining && c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
}

// wait blocks until no WebSocket is open after drain, or until ctx ends.
func (c *counter) wait(ctx context.Context) error {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	ended := c.ended
	c.report()
	c.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
