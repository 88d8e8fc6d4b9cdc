// Package catalog keeps agent definitions where every process finds them: in a key-value bucket
// beside the log, addressed by their content.
//
//	<agent>/<revision>   a definition; never changes
//	<agent>              which revision is current
//
// The api publishes, and resolves a name to a revision when it accepts an input; the run keeps that
// revision. Workers only read revisions. All methods may be used concurrently.
package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// Errors of look-ups.
var (
	ErrUnknownAgent    = errors.New("catalog: unknown agent")
	ErrUnknownRevision = errors.New("catalog: unknown revision")
)

// Catalog reads and publishes definitions.
type Catalog struct {
	kv jetstream.KeyValue

	revisions sync.Map // "agent/revision" → *agents.Definition; they never change

	mu      sync.RWMutex
	current map[string]Published
}

// Published is an agent's current definition.
type Published struct {
	*agents.Definition
	Revision string
}

// Open opens the bucket, creating it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Catalog, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "agents", Description: "Perdure: agent definitions by revision", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	return &Catalog{kv: kv, current: map[string]Published{}}, nil
}

// Publish makes a definition its agent's current one. Nodes that start together publish the same at
// the same time; where they differ, the last one stands.
func (c *Catalog) Publish(ctx context.Context, d *agents.Definition) (revision string, err error) {
	revision = d.Revision()
	body, err := agents.Encode(d)
	if err != nil {
		return "", err
	}
	if _, err := c.kv.Create(ctx, d.Name+"/"+revision, body); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return "", fmt.Errorf("catalog: publish %s: %w", d.Name, err)
	}
	for {
		err := c.point(ctx, d.Name, revision)
		if err == nil {
			return revision, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return "", fmt.Errorf("catalog: publish %s: %w", d.Name, err)
		}
		if err := sleep(ctx, look); err != nil { // somebody was faster, or a replica is behind
			return "", fmt.Errorf("catalog: publish %s: %w", d.Name, err)
		}
	}
}

// point makes a revision the current one, unless somebody else changes that meanwhile: then it fails
// with ErrKeyExists or ErrKeyRevisionMismatch.
func (c *Catalog) point(ctx context.Context, name, revision string) error {
	entry, err := c.kv.Get(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		_, err = c.kv.Create(ctx, name, []byte(revision))
	case err == nil && !bytes.Equal(entry.Value(), []byte(revision)):
		_, err = c.kv.Update(ctx, name, []byte(revision), entry.Revision())
	}
	return err
}

// A definition is there before anything names it, but the replica that is asked may not have it yet.
const (
	look  = 50 * time.Millisecond // between two looks
	looks = 40
)

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Revision returns a definition by its revision, or ErrUnknownRevision.
func (c *Catalog) Revision(ctx context.Context, agent, revision string) (*agents.Definition, error) {
	key := agent + "/" + revision
	if d, ok := c.revisions.Load(key); ok {
		return d.(*agents.Definition), nil
	}
	entry, err := c.kv.Get(ctx, key)
	for n := 0; n < looks && errors.Is(err, jetstream.ErrKeyNotFound); n++ {
		if err := sleep(ctx, look); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", key, err)
		}
		entry, err = c.kv.Get(ctx, key)
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknownRevision, key)
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: %s: %w: %w", key, stream.ErrUnavailable, err)
	}
	d, err := agents.Decode(entry.Value())
	if err != nil {
		return nil, fmt.Errorf("catalog: %s: %w", key, err)
	}
	c.revisions.Store(key, d)
	return d, nil
}

// Watch keeps the current definitions at hand until ctx ends. It returns when all that are
// published by now are loaded; done is closed when it has stopped.
func (c *Catalog) Watch(ctx context.Context) (done <-chan struct{}, err error) {
	w, err := c.kv.WatchAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("catalog: watch: %w", err)
	}
	loaded, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = w.Stop() }()
		c.follow(ctx, w.Updates(), loaded)
	}()
	select {
	case <-loaded:
		return ended, nil
	case <-ended:
		return nil, fmt.Errorf("catalog: watch: %w", context.Cause(ctx))
	}
}

func (c *Catalog) follow(ctx context.Context, updates <-chan jetstream.KeyValueEntry, loaded chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case entry, ok := <-updates:
			switch {
			case !ok:
				return
			case entry == nil:
				close(loaded)
			case !strings.Contains(entry.Key(), "/"):
				c.take(ctx, entry)
			}
		}
	}
}

func (c *Catalog) take(ctx context.Context, entry jetstream.KeyValueEntry) {
	name, revision := entry.Key(), string(entry.Value())
	if entry.Operation() != jetstream.KeyValuePut {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.current, name)
		return
	}
	d, err := c.Revision(ctx, name, revision)
	for errors.Is(err, stream.ErrUnavailable) && sleep(ctx, look) == nil { // nobody will tell of it again
		d, err = c.Revision(ctx, name, revision)
	}
	if err != nil {
		return // the definition before stays
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current[name] = Published{Definition: d, Revision: revision}
}

// Current returns an agent's current definition, or ErrUnknownAgent. It needs Watch.
func (c *Catalog) Current(name string) (Published, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p, ok := c.current[name]
	if !ok {
		return Published{}, fmt.Errorf("%w: %.64q", ErrUnknownAgent, name)
	}
	return p, nil
}

// List returns all current definitions by name. It needs Watch.
func (c *Catalog) List() []Published {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]Published, 0, len(c.current))
	for _, p := range c.current {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Published) int { return strings.Compare(a.Name, b.Name) })
	return list
}
