// Package catalog stores definitions of agents in a key-value bucket of NATS JetStream that all
// processes share.
//
//	<agent>/<revision>       a definition; never changes
//	published.<agent>.<n>    the agent's n-th publication: the revision that became current,
//	                         and its source
//
// The last publication is the current one. A publisher creates the key after the last one. If
// several publish concurrently, one succeeds and the others read again, so the publications form a
// history.
//
// The API publishes, and resolves an agent's name to a revision when it accepts an input; the run
// keeps that revision. Workers only read revisions.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// Errors of lookups.
var (
	ErrUnknownAgent    = errors.New("catalog: unknown agent")
	ErrUnknownRevision = errors.New("catalog: unknown revision")
)

// UnknownError reports an unknown agent or revision. It matches ErrUnknownAgent if Revision is "",
// and ErrUnknownRevision otherwise.
type UnknownError struct{ Agent, Revision string }

func (e *UnknownError) Error() string {
	if e.Revision == "" {
		return fmt.Sprintf("unknown agent %.64q", e.Agent)
	}
	return fmt.Sprintf("the agent %.64q has no revision %.64q", e.Agent, e.Revision)
}

// Is implements the interface of errors.Is.
func (e *UnknownError) Is(target error) bool {
	return target == ErrUnknownAgent && e.Revision == "" || target == ErrUnknownRevision && e.Revision != ""
}

// Catalog reads and publishes definitions. Revision, Latest and Names read the bucket; Current,
// List and Publications read the memory that Watch fills, and are empty without it. It is safe for
// concurrent use.
type Catalog struct {
	log *stream.Log
	kv  jetstream.KeyValue

	revisions sync.Map // "agent/revision" → *agents.Definition; entries never change

	mu           sync.RWMutex
	current      map[string]Published
	publications map[string][]Publication // by agent, in the order of their numbers
	changed      chan struct{}            // closed and replaced after a publication; nil = Watch was not called
}

// Published is an agent's current definition.
type Published struct {
	*agents.Definition
	Revision string
}

// Open opens the bucket, and creates it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Catalog, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "agents", Description: "Perdure: agent definitions by revision", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	return &Catalog{log: l, kv: kv, current: map[string]Published{}, publications: map[string][]Publication{}}, nil
}

// A definition is written before its publication, but the replica that answers may lag. So Revision
// reads again, up to 40 times with pauses of 50 ms: 2 s in all.
const (
	pollInterval = 50 * time.Millisecond
	maxPolls     = 40
)

// sleep waits for d; it fails with the cause of ctx if ctx ends first.
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

// Revision returns a definition by its revision. The caller must not change it. For an unknown
// revision it blocks for 2 s, and then fails with ErrUnknownRevision.
func (c *Catalog) Revision(ctx context.Context, agent, revision string) (*agents.Definition, error) {
	key := agent + "/" + revision
	if d, ok := c.revisions.Load(key); ok {
		return d.(*agents.Definition), nil
	}
	entry, err := c.kv.Get(ctx, key)
	for n := 0; n < maxPolls && errors.Is(err, jetstream.ErrKeyNotFound); n++ {
		if err := sleep(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", key, err)
		}
		entry, err = c.kv.Get(ctx, key)
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, &UnknownError{Agent: agent, Revision: revision}
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

// Current returns an agent's current definition from memory, or ErrUnknownAgent. It requires Watch.
func (c *Catalog) Current(name string) (Published, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p, ok := c.current[name]
	if !ok {
		return Published{}, &UnknownError{Agent: name}
	}
	return p, nil
}

// Latest returns an agent's current definition from the bucket, or ErrUnknownAgent. It does not
// require Watch.
func (c *Catalog) Latest(ctx context.Context, name string) (Published, error) {
	last, err := c.lastPublication(ctx, name)
	if err != nil {
		return Published{}, err
	}
	if last.Revision == "" {
		return Published{}, &UnknownError{Agent: name}
	}
	d, err := c.Revision(ctx, name, last.Revision)
	return Published{Definition: d, Revision: last.Revision}, err
}

// Names returns the names of all agents in the bucket, unordered. It does not require Watch.
func (c *Catalog) Names(ctx context.Context) ([]string, error) {
	lister, err := c.kv.ListKeysFiltered(ctx, publishedPrefix+">")
	if err != nil {
		return nil, fmt.Errorf("catalog: names: %w: %w", stream.ErrUnavailable, err)
	}
	names := map[string]bool{}
	for key := range lister.Keys() {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, publishedPrefix), ".")
		names[name] = true
	}
	return slices.Collect(maps.Keys(names)), nil
}

// List returns all current definitions, sorted by name. It requires Watch.
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

// Publications returns the publications of an agent in order; the last one is current. It fails
// with ErrUnknownAgent if there are none. It requires Watch.
func (c *Catalog) Publications(name string) ([]Publication, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := c.publications[name]
	if len(list) == 0 {
		return nil, &UnknownError{Agent: name}
	}
	return slices.Clone(list), nil
}
