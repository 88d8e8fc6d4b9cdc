package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// decodePublication returns the agent and the publication of an entry. ok is false if the key was
// deleted or the entry is invalid.
func decodePublication(entry jetstream.KeyValueEntry) (agent address, p Publication, ok bool) {
	agent, number, ok := parsePublishedKey(entry.Key())
	if !ok || entry.Operation() != jetstream.KeyValuePut {
		return agent, p, false
	}
	var stored publication
	if json.Unmarshal(entry.Value(), &stored) != nil || !agent.isOf(stored.Tenant) {
		return agent, p, false
	}
	return agent, Publication{
		Tenant: stored.Tenant, Number: number, Revision: stored.Revision, Source: stored.Source, By: stored.By, At: entry.Created(), Bytes: stored.Bytes, Note: stored.Note,
	}, true
}

// Watch keeps the current definitions, the publications and the records of drafts in memory. It
// returns when it has loaded all present ones. The caller stops the returned watches.
func (c *Catalog) Watch(ctx context.Context) (*Watches, error) {
	published, err := watch.Begin(ctx, watch.Source{Log: c.log, Bucket: c.kv, Keys: publishedPrefix + ">"}, watch.Receiver{Load: c.newLoading, Take: c.applyChange})
	if err != nil {
		return nil, fmt.Errorf("catalog: watch: %w", err)
	}
	drafts, err := watch.Begin(ctx, watch.Source{Log: c.log, Bucket: c.kv, Keys: draftPrefix + ">"}, watch.Receiver{Load: c.newDraftLoading, Take: c.applyDraft})
	if err != nil {
		published.Stop()
		return nil, fmt.Errorf("catalog: watch: %w", err)
	}
	return &Watches{published, drafts}, nil
}

// Watches keep the memory of a Catalog current, until Stop.
type Watches struct{ published, drafts *watch.Watch }

// Stop ends the watches and waits for their goroutines.
func (w *Watches) Stop() {
	w.published.Stop()
	w.drafts.Stop()
}

// loading collects the last publication of each agent during a load, because only the definitions
// of these are loaded.
type loading struct {
	catalog *Catalog
	last    map[address]Publication
}

// newLoading begins a load, see [watch.Receiver].
func (c *Catalog) newLoading() watch.Loading { return &loading{c, map[address]Publication{}} }

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) {
	if agent, p, ok := decodePublication(entry); ok {
		l.catalog.addPublication(agent, p, nil)
		l.last[agent] = p
	}
}

// Done implements [watch.Loading]: it loads the definitions. Unlike other copies it does not
// replace the memory: publications are never deleted.
func (l *loading) Done(ctx context.Context, revision uint64) {
	for agent, p := range l.last {
		l.catalog.addPublication(agent, p, l.catalog.load(ctx, agent.name, p))
	}
	l.catalog.reach(revision)
}

// applyChange applies a change of the bucket, see [watch.Receiver].
func (c *Catalog) applyChange(ctx context.Context, change jetstream.KeyValueEntry) {
	if agent, p, ok := decodePublication(change); ok { // an operator may have deleted a key: that changes nothing here
		c.addPublication(agent, p, c.load(ctx, agent.name, p))
	}
	c.reach(change.Revision())
}

// reach notes that the memory has all publications up to a revision of the bucket.
func (c *Catalog) reach(revision uint64) {
	c.mu.Lock()
	c.reached = max(c.reached, revision)
	c.mu.Unlock()
	c.notifyWaiters()
}

// CatchUp blocks until the memory has all publications that are durable at the call. Without Watch it does not
// wait. Errors: stream.ErrUnavailable if the bucket cannot be read, and the cause of ctx.
func (c *Catalog) CatchUp(ctx context.Context) error {
	last, err := c.log.LastRevision(ctx, c.kv, publishedPrefix+">")
	if err != nil {
		return fmt.Errorf("catalog: %w: %w", stream.ErrUnavailable, err)
	}
	return c.awaitMemory(ctx, "publications", func() bool { return c.reached >= last })
}

// load returns the definition of a publication; nil if it cannot be decoded, because a newer
// version of Perdure wrote it. While the bucket is unavailable it tries again, because the watch
// delivers each change once.
func (c *Catalog) load(ctx context.Context, name string, p Publication) *agents.Definition {
	d, err := c.Revision(ctx, p.Tenant, name, p.Revision)
	for errors.Is(err, stream.ErrUnavailable) && durations.Sleep(ctx, pollInterval) == nil {
		d, err = c.Revision(ctx, p.Tenant, name, p.Revision)
	}
	return d
}

// addPublication adds a publication, unless it is there: a watch that begins again delivers all of
// them. d is its definition; with nil the previous definition stays current.
func (c *Catalog) addPublication(agent address, p Publication, d *agents.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.publications[agent]
	index, found := slices.BinarySearchFunc(list, p.Number, func(p Publication, n uint64) int { return cmp.Compare(p.Number, n) })
	if !found {
		list = slices.Insert(list, index, p)
		c.publications[agent] = list
		c.bytes[agent.tenant] += p.Bytes
	}
	if d != nil && index == len(list)-1 {
		c.setCurrent(agent, Published{Definition: d, Revision: p.Revision, Tenant: p.Tenant})
	}
}

// notifyWaiters wakes all calls of await.
func (c *Catalog) notifyWaiters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
	}
	c.changed = make(chan struct{})
}

// await waits until the memory has a publication, so that its publisher can read it at once.
func (c *Catalog) await(ctx context.Context, agent address, number uint64) error {
	return c.awaitMemory(ctx, agent.name, func() bool {
		list := c.publications[agent]
		return len(list) > 0 && list[len(list)-1].Number >= number
	})
}

// awaitMemory waits until has returns true, which is called with the memory locked. Without Watch it
// returns nil. what is for the error.
func (c *Catalog) awaitMemory(ctx context.Context, what string, has func() bool) error {
	for {
		c.mu.RLock()
		isThere, changed := has(), c.changed
		c.mu.RUnlock()
		if isThere || changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("catalog: %s: %w", what, context.Cause(ctx))
		}
	}
}
