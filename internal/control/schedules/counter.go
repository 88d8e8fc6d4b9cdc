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

// Counter counts the schedules of tenants, and the times at which they fire, from the bucket of the
// Store. It keeps nothing else of them. The caller stops its Watch. It is safe for concurrent use.
type Counter struct {
	*watch.Watch

	mu sync.RWMutex
	// tenants has the schedules by the tokens of tenant and schedule.
	tenants counts
}

// counts are schedules by tenant and ID.
type counts map[string]map[string]counted

// counted is what a Counter keeps of a schedule: its owner ("" = an anonymous one), and its times
// per hour.
type counted struct {
	owner   string
	perHour int64
}

// Count begins to count, and returns when the present schedules are counted.
func (s *Store) Count(ctx context.Context, l *stream.Log) (*Counter, error) {
	c := &Counter{}
	receiver := watch.Receiver{Load: func() watch.Loading { return &counting{c, counts{}} }, Take: c.take}
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
	for _, k := range all {
		perHour += k.perHour
	}
	return int64(len(all)), perHour
}

// CountsOf returns what Counts returns, of the schedules that a subject owns.
func (c *Counter) CountsOf(tenant, subject string) (schedules, perHour int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, k := range c.tenants[stream.KeyToken(tenant)] {
		if k.owner == subject {
			schedules++
			perHour += k.perHour
		}
	}
	return schedules, perHour
}

// Await returns when the Counter has counted the schedule of a tenant with a number of times per
// hour, as a request has just written it, or when ctx ends.
func (c *Counter) Await(ctx context.Context, tenant, id string, perHour int64) {
	for {
		changed := c.Changed()
		c.mu.RLock()
		k, ok := c.tenants[stream.KeyToken(tenant)][stream.KeyToken(id)]
		c.mu.RUnlock()
		if ok && k.perHour == perHour {
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
	tenants counts
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

// set counts the schedule of an entry; one that was deleted, or that this version cannot decode,
// has no times.
func (t counts) set(entry jetstream.KeyValueEntry) {
	tenant, id, ok := strings.Cut(entry.Key(), ".")
	if !ok {
		return
	}
	var stored Stored
	if entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(entry.Value(), &stored) != nil {
		delete(t[tenant], id)
		if len(t[tenant]) == 0 {
			delete(t, tenant)
		}
		return
	}
	if t[tenant] == nil {
		t[strings.Clone(tenant)] = map[string]counted{}
	}
	k := counted{perHour: stored.TimesPerHour()}
	if stored.Owner != nil {
		k.owner = stored.Owner.Subject
	}
	t[tenant][strings.Clone(id)] = k
}
