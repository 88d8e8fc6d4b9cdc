package threads

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Counter counts the active and the waiting threads of each tenant. Unlike an Index it keeps no
// other threads in memory, and needs no encryption keys. It is safe for concurrent use.
type Counter struct {
	*watch.Watch

	mu sync.RWMutex
	// tenants has the statuses of active and waiting threads, by the tokens of tenant and thread.
	tenants statuses
}

// statuses are the statuses of threads, by the tokens of tenant and thread.
type statuses map[string]map[string]stream.Status

// Count loads a counter, and keeps it current until Stop, which the caller must call. It blocks until
// the counter is loaded, and fails if ctx ends before that.
func Count(ctx context.Context, l *stream.Log) (*Counter, error) {
	c := &Counter{}
	source := watch.Source{Log: l, Bucket: l.Index(), Keys: stream.IndexPrefix + ">"}
	receiver := watch.Receiver{Load: func() watch.Loading { return &counting{c, statuses{}} }, Take: c.take}
	var err error
	if c.Watch, err = watch.Begin(ctx, source, receiver); err != nil {
		return nil, fmt.Errorf("threads: load: %w", err)
	}
	return c, nil
}

// Counts returns the numbers of a tenant's threads: those with an active run, and those that wait for
// decisions or results of client tools. It takes time in proportion to them.
func (c *Counter) Counts(tenant string) (active, waiting int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, status := range c.tenants[stream.IndexToken(stream.Token(tenant))] {
		if status == stream.StatusWaiting {
			waiting++
		} else {
			active++
		}
	}
	return active, waiting
}

// counting is the load of a counter (see watch.Loading).
type counting struct {
	counter *Counter
	tenants statuses
}

// Take implements watch.Loading.
func (l *counting) Take(entry jetstream.KeyValueEntry) { l.tenants.set(entry) }

// Done implements watch.Loading.
func (l *counting) Done(context.Context, uint64) {
	l.counter.mu.Lock()
	defer l.counter.mu.Unlock()
	l.counter.tenants = l.tenants
}

// take applies one change.
func (c *Counter) take(_ context.Context, change jetstream.KeyValueEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tenants.set(change)
}

// set applies an entry. A thread that is neither active nor waiting, or was removed, is dropped.
func (s statuses) set(entry jetstream.KeyValueEntry) {
	tenant, token, ok := splitKey(entry.Key())
	if !ok {
		return
	}
	switch status := statusOf(entry); status {
	case stream.StatusRunning, stream.StatusPaused, stream.StatusWaiting:
		if s[tenant] == nil {
			s[strings.Clone(tenant)] = map[string]stream.Status{}
		}
		s[tenant][strings.Clone(token)] = status
	default:
		delete(s[tenant], token)
		if len(s[tenant]) == 0 {
			delete(s, tenant)
		}
	}
}

// statusOf returns the status of the thread of an entry; "" = the thread was removed.
func statusOf(entry jetstream.KeyValueEntry) stream.Status {
	if entry.Operation() != jetstream.KeyValuePut {
		return ""
	}
	return stream.DecodeStatus(entry.Value())
}
