package sockets

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/streams"
)

// counter counts the open sockets of a server, so that it can wait for them.
type counter struct {
	room *semaphore.Weighted

	mu       sync.Mutex
	open     int
	draining bool
	ended    chan struct{} // closed when no socket is open or can be opened; nil = nothing waits
}

// enter reports whether another socket may be opened.
func (c *counter) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return streams.ErrDrain
	}
	if !c.room.TryAcquire(1) {
		return problem.Full()
	}
	c.open++
	return nil
}

func (c *counter) leave() {
	c.room.Release(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.settle()
}

func (c *counter) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
}

// settle closes ended if no socket is open.
func (c *counter) settle() {
	if c.open == 0 && c.draining && c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
}

func (c *counter) wait(ctx context.Context) error {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	ended := c.ended
	c.settle()
	c.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
