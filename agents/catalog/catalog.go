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
	"github.com/perdure/perdure/internal/durations"
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

// Catalog reads and publishes definitions. Revision, Latest and Names read the bucket; the other
// lookups read the memory that Watch fills, and are empty without it. It is safe for concurrent
// use.
//
// The parameter tenant of a lookup is the tenant for which it is made; "" = for an agent of the
// platform, and the lookup finds only agents of the platform.
type Catalog struct {
	log *stream.Log
	kv  jetstream.KeyValue

	revisions sync.Map // key in the bucket → *agents.Definition; entries never change

	mu           sync.RWMutex
	current      map[address]Published
	triggered    map[tenantEvent]map[string]bool // names of the current agents with a trigger for an event
	publications map[address][]Publication       // in the order of their numbers
	bytes        map[string]int64                // of all publications, by the token of the tenant
	drafts       map[address]map[string]draft
	reached      uint64        // the revision of the bucket up to which the memory has all publications
	changed      chan struct{} // closed and replaced after a publication; nil = Watch was not called
}

// tenantEvent is a type of events, for the agents with a token of a tenant; "" = those of the platform.
type tenantEvent struct{ tenant, event string }

// Published is an agent's current definition.
type Published struct {
	*agents.Definition
	Revision string
	Tenant   string // to which the agent belongs; "" = to the platform
	// IsDraft tells that the revision is not published. A run must mark it (UseDraft).
	IsDraft bool
}

// Open opens the bucket, and creates it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Catalog, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "agents", Description: "Perdure: agent definitions by revision", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	c := newCatalog()
	c.log, c.kv = l, kv
	return c, nil
}

// newCatalog returns a catalog without a bucket.
func newCatalog() *Catalog {
	return &Catalog{current: map[address]Published{}, triggered: map[tenantEvent]map[string]bool{}, publications: map[address][]Publication{}, bytes: map[string]int64{}, drafts: map[address]map[string]draft{}}
}

// A definition is written before its publication, but the replica that answers may lag. So Revision
// and Latest read again, up to 40 times with pauses of 50 ms: 2 s in all.
const (
	pollInterval = 50 * time.Millisecond
	maxPolls     = 40
)

// Revision returns a definition by its revision. The caller must not change it. A revision of an
// agent of another tenant is unknown. For an unknown revision Revision blocks for 2 s, and then
// fails with ErrUnknownRevision.
func (c *Catalog) Revision(ctx context.Context, tenant, agent, revision string) (*agents.Definition, error) {
	owner := addressOf(Referrer(tenant, revision), agent)
	key := owner.definitionKey(revision)
	if d, ok := c.revisions.Load(key); ok {
		return d.(*agents.Definition), nil
	}
	entry, err := c.getDefinition(ctx, owner, revision)
	for n := 0; n < maxPolls && errors.Is(err, jetstream.ErrKeyNotFound); n++ {
		if err := durations.Sleep(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", key, err)
		}
		entry, err = c.getDefinition(ctx, owner, revision)
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

// getDefinition reads the definition of a revision, or else of a draft.
func (c *Catalog) getDefinition(ctx context.Context, agent address, revision string) (jetstream.KeyValueEntry, error) {
	entry, err := c.kv.Get(ctx, agent.definitionKey(revision))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return c.kv.Get(ctx, agent.draftDefinitionKey(revision))
	}
	return entry, err
}

// Current returns the current definition of the agent that a name means for a tenant, from memory,
// or ErrUnknownAgent. It requires Watch.
func (c *Catalog) Current(tenant, name string) (Published, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, a := range candidates(tenant, name) {
		if p, ok := c.current[a]; ok {
			return p, nil
		}
	}
	return Published{}, &UnknownError{Agent: name}
}

// Latest returns the current definition of the agent that a name means for a tenant, from the
// bucket, or ErrUnknownAgent. It does not require Watch. The replica that answers may lag, so Latest
// asks the leader whether a missing agent was published, and reads again if it was. Errors:
// ErrUnknownAgent, stream.ErrUnavailable.
func (c *Catalog) Latest(ctx context.Context, tenant, name string) (Published, error) {
	for range maxPolls {
		published, err := c.latestOfReplica(ctx, tenant, name)
		if !errors.Is(err, ErrUnknownAgent) {
			return published, err
		}
		isPublished, leaderErr := c.isPublished(ctx, tenant, name)
		switch {
		case leaderErr != nil:
			return Published{}, leaderErr
		case !isPublished:
			return Published{}, err
		}
		if err := durations.Sleep(ctx, pollInterval); err != nil {
			return Published{}, err
		}
	}
	return Published{}, fmt.Errorf("catalog: %s: %w: the replica lags", name, stream.ErrUnavailable)
}

// isPublished asks the leader of the bucket whether an agent that a name means for a tenant was
// published.
func (c *Catalog) isPublished(ctx context.Context, tenant, name string) (bool, error) {
	for _, a := range candidates(tenant, name) {
		last, err := c.log.LastRevision(ctx, c.kv, a.publishedKeys()+"*")
		if last > 0 || err != nil {
			return last > 0, err
		}
	}
	return false, nil
}

// latestOfReplica is Latest with what one replica knows.
func (c *Catalog) latestOfReplica(ctx context.Context, tenant, name string) (Published, error) {
	for _, a := range candidates(tenant, name) {
		last, err := c.lastPublication(ctx, a)
		if err != nil {
			return Published{}, err
		}
		if last.Revision != "" {
			d, err := c.Revision(ctx, last.Tenant, name, last.Revision)
			return Published{Definition: d, Revision: last.Revision, Tenant: last.Tenant}, err
		}
	}
	return Published{}, &UnknownError{Agent: name}
}

// Names returns the names of all agents of the platform in the bucket, unordered. It does not
// require Watch.
func (c *Catalog) Names(ctx context.Context) ([]string, error) {
	keys, err := stream.Keys(ctx, c.kv, publishedPrefix+"*.*")
	if err != nil {
		return nil, fmt.Errorf("catalog: names: %w", err)
	}
	names := map[string]bool{}
	for _, key := range keys {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, publishedPrefix), ".")
		names[name] = true
	}
	return slices.Collect(maps.Keys(names)), nil
}

// List returns the current definitions of all agents that names mean for a tenant, sorted by name.
// It requires Watch.
func (c *Catalog) List(tenant string) []Published {
	c.mu.RLock()
	defer c.mu.RUnlock()
	byName := map[string]Published{}
	for a, p := range c.current {
		if _, isFound := byName[a.name]; a.isOf(tenant) || a.isOf("") && !isFound {
			byName[a.name] = p
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Published) int { return strings.Compare(a.Name, b.Name) })
}

// Triggered returns the current definitions of the agents of a tenant, and of the platform, that have a
// trigger for a type of events. They are unordered. It requires Watch.
func (c *Catalog) Triggered(tenant, event string) []Published {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var found []Published
	owner := addressOf(tenant, "").tenant
	for name := range c.triggered[tenantEvent{owner, event}] {
		found = append(found, c.current[address{owner, name}])
	}
	if owner == "" {
		return found
	}
	for name := range c.triggered[tenantEvent{"", event}] {
		if _, isReplaced := c.current[address{owner, name}]; !isReplaced {
			found = append(found, c.current[address{"", name}])
		}
	}
	return found
}

// setCurrent replaces the current definition of an agent. The caller holds mu.
func (c *Catalog) setCurrent(agent address, p Published) {
	if old := c.current[agent].Definition; old != nil {
		for _, t := range old.Triggers {
			key := tenantEvent{agent.tenant, t.Event}
			if delete(c.triggered[key], agent.name); len(c.triggered[key]) == 0 {
				delete(c.triggered, key)
			}
		}
	}
	c.current[agent] = p
	for _, t := range p.Triggers {
		key := tenantEvent{agent.tenant, t.Event}
		if c.triggered[key] == nil {
			c.triggered[key] = map[string]bool{}
		}
		c.triggered[key][agent.name] = true
	}
}

// Count returns the number of agents that belong to a tenant; "" = to the platform. It requires
// Watch.
func (c *Catalog) Count(tenant string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for a := range c.current {
		if a.isOf(tenant) {
			n++
		}
	}
	return n
}

// Bytes returns the bytes of the definitions that were published for agents of a tenant, and of the
// drafts of its agents; "" = of the platform. A definition counts as often as it was published. It
// requires Watch.
func (c *Catalog) Bytes(tenant string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	owner := addressOf(tenant, "").tenant
	sum := c.bytes[owner]
	for agent, drafts := range c.drafts {
		if agent.tenant == owner {
			for _, d := range drafts {
				sum += d.Bytes
			}
		}
	}
	return sum
}

// TenantsWith returns how many tenants have an agent of a name. It requires Watch.
func (c *Catalog) TenantsWith(name string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for a := range c.current {
		if a.name == name && !a.isOf("") {
			n++
		}
	}
	return n
}

// Publications returns the publications of an agent that belongs to a tenant ("" = to the
// platform), in order; the last one is current. It fails with ErrUnknownAgent if there are none. It
// requires Watch.
func (c *Catalog) Publications(tenant, name string) ([]Publication, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := c.publications[addressOf(tenant, name)]
	if len(list) == 0 {
		return nil, &UnknownError{Agent: name}
	}
	return slices.Clone(list), nil
}
