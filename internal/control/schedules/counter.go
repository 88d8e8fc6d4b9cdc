package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Counter counts the schedules of tenants, and the times at which they fire, from the bucket of the Store.
// It keeps a number for each schedule. The caller stops its Watch. It is safe for concurrent use.
type Counter struct {
	*watch.Watch

	mu sync.RWMutex
	// tenants has the times per hour of each schedule, by the tokens of tenant and schedule.
	tenants times
}

// times are times per hour by tenant and schedule.
type times map[string]map[string]int64

// Count begins to count, and returns when the present schedules are counted.
func (s *Store) Count(ctx context.Context, l *stream.Log) (*Counter, error) {
	c := &Counter{}
	receiver := watch.Receiver{Load: func() watch.Loading { return &counting{c, times{}} }, Take: c.take}
	var err error
	if c.Watch, err = watch.Begin(ctx, watch.Source{Log: l, Bucket: s.kv, Keys: ">"}, receiver); err != nil {
		return nil, fmt.Errorf("schedules: count: %w", err)
	}
	return c, nil
}

// Counts returns the number of a tenant's schedules, and how often they fire in an hour at most.
func (c *Counter) Counts(tenant string) (schedules, perHour int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := c.tenants[stream.KeyToken(tenant)]
	for _, n := range all {
		perHour += n
	}
	return int64(len(all)), perHour
}

// Await returns when the Counter has counted the schedule of a tenant with a number of times per hour, as a
// request has just written it, or when ctx ends.
func (c *Counter) Await(ctx context.Context, tenant, id string, perHour int64) {
	for {
		changed := c.Changed()
		c.mu.RLock()
		n, ok := c.tenants[stream.KeyToken(tenant)][stream.KeyToken(id)]
		c.mu.RUnlock()
		if ok && n == perHour {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// counting collects the present schedules.
type counting struct {
	counter *Counter
	tenants times
}

// Take implements [watch.Loading].
func (l *counting) Take(entry jetstream.KeyValueEntry) { l.tenants.set(entry) }

// Done implements [watch.Loading].
func (l *counting) Done(context.Context, uint64) {
	l.counter.mu.Lock()
	defer l.counter.mu.Unlock()
	l.counter.tenants = l.tenants
}

// take applies a change of the bucket, see [watch.Receiver].
func (c *Counter) take(_ context.Context, change jetstream.KeyValueEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tenants.set(change)
}

// set counts the schedule of an entry; one that was deleted, or that this version cannot decode, has no times.
func (t times) set(entry jetstream.KeyValueEntry) {
	tenant, id, ok := strings.Cut(entry.Key(), ".")
	if !ok {
		return
	}
	var spec Spec
	if entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(entry.Value(), &spec) != nil {
		delete(t[tenant], id)
		if len(t[tenant]) == 0 {
			delete(t, tenant)
		}
		return
	}
	if t[tenant] == nil {
		t[strings.Clone(tenant)] = map[string]int64{}
	}
	t[tenant][strings.Clone(id)] = spec.TimesPerHour()
}
