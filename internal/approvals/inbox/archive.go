package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// ArchiveTTL is how long the archive has a decided interrupt. The thread's audit has it as long as
// the thread exists.
const ArchiveTTL = 30 * 24 * time.Hour

// decidedPrefix begins the keys of decided interrupts; <tenant>.<time of the decision>.<approval>
// follows.
const decidedPrefix = "decided."

// Reference identifies a decided interrupt. Its content is in the audit of its thread
// (ReadHistory).
type Reference struct {
	ID     string `json:"id"`
	Thread string `json:"thread"`
	Agent  string `json:"agent"`
	Tool   string `json:"tool"`
	// Approvers and NotByRequester are those of the Voting when it was decided, for Reader.
	Approvers      []string `json:"approvers,omitempty"`
	NotByRequester bool     `json:"notByRequester,omitempty"`
}

// properties returns what filters compare.
func (r *Reference) properties() *properties {
	return &properties{thread: r.Thread, agent: r.Agent, tool: r.Tool, approvers: r.Approvers, notByRequester: r.NotByRequester}
}

// decidedKey returns the key of an interrupt that e has resolved.
func decidedKey(tenant string, e *Event) string {
	return decidedPrefix + stream.KeyToken(tenant) + "." + sortKeyOf(e.At, e.Approval.ID)
}

// Archive adds the interrupt that e has resolved to the archive, until ArchiveTTL has passed since
// e. Repeating it changes nothing.
func (s *Store) Archive(ctx context.Context, tenant string, e *Event) error {
	ttl := time.Until(e.At.Add(ArchiveTTL)).Truncate(time.Second)
	if ttl <= 0 {
		return nil
	}
	a := &e.Approval
	value, err := json.Marshal(Reference{ID: a.ID, Thread: a.ThreadID, Agent: a.Agent, Tool: a.ToolName, Approvers: a.Approvers, NotByRequester: a.NotByRequester})
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	_, err = s.kv.Create(ctx, decidedKey(tenant, e), value, jetstream.KeyTTL(ttl))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return asUnavailable(err)
}

// archive has the decided interrupts in memory, sorted by the time of the decision. It is safe for
// concurrent use.
type archive struct {
	*watch.Watch

	mu sync.RWMutex
	// decided is by the tenant's token, oldest first.
	decided map[string][]*archived
}

// archived is a decided interrupt with its sort key.
type archived struct {
	sortKey string
	Reference
}

// watchArchive loads the archive, and keeps it current until Stop.
func (s *Store) watchArchive(ctx context.Context) (a *archive, err error) {
	a = &archive{}
	source := watch.Source{Log: s.log, Bucket: s.kv, Keys: decidedPrefix + ">"}
	a.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: a.load, Take: a.apply})
	return a, err
}

// archiveLoading collects the decided interrupts during a load of the archive, by tenant and sort
// key.
type archiveLoading struct {
	archive *archive
	all     map[string]map[string]*archived
}

// load begins a load of the archive, see [watch.Receiver].
func (a *archive) load() watch.Loading { return &archiveLoading{a, map[string]map[string]*archived{}} }

// Take implements [watch.Loading].
func (l *archiveLoading) Take(entry jetstream.KeyValueEntry) {
	tenant, d := decodeArchived(entry)
	if d == nil {
		return
	}
	if l.all[tenant] == nil {
		l.all[tenant] = map[string]*archived{}
	}
	if d.ID == "" {
		delete(l.all[tenant], d.sortKey)
		return
	}
	l.all[tenant][d.sortKey] = d
}

// Done implements [watch.Loading]: it replaces the archive.
func (l *archiveLoading) Done(context.Context, uint64) {
	sorted := make(map[string][]*archived, len(l.all))
	for tenant, items := range l.all {
		sorted[tenant] = slices.SortedFunc(maps.Values(items), func(a, b *archived) int { return strings.Compare(a.sortKey, b.sortKey) })
	}
	l.archive.mu.Lock()
	defer l.archive.mu.Unlock()
	l.archive.decided = sorted
}

// apply adds one change of the bucket to the archive, see [watch.Receiver].
func (a *archive) apply(_ context.Context, change jetstream.KeyValueEntry) {
	tenant, d := decodeArchived(change)
	if d == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.decided == nil {
		a.decided = map[string][]*archived{}
	}
	items := a.decided[tenant]
	at, found := slices.BinarySearchFunc(items, d.sortKey, compareArchived)
	switch {
	case d.ID == "" && found:
		items = slices.Delete(items, at, at+1)
	case d.ID != "" && !found:
		items = slices.Insert(items, at, d)
	}
	a.decided[tenant] = items
}

// compareArchived compares a decided interrupt with a sort key, for binary searches.
func compareArchived(a *archived, sortKey string) int { return strings.Compare(a.sortKey, sortKey) }

// has reports whether the archive of a tenant, by its token, has the interrupt at a sort key.
func (a *archive) has(tenant, sortKey string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	_, found := slices.BinarySearchFunc(a.decided[tenant], sortKey, compareArchived)
	return found
}

// decodeArchived returns the decided interrupt of an entry. Its ID is empty if the key was deleted;
// d is nil if the entry is invalid.
func decodeArchived(entry jetstream.KeyValueEntry) (tenant string, d *archived) {
	tenant, sortKey, ok := strings.Cut(strings.TrimPrefix(entry.Key(), decidedPrefix), ".")
	if !ok {
		return "", nil
	}
	d = &archived{sortKey: strings.Clone(sortKey)}
	if entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &d.Reference) != nil {
		return "", nil
	}
	d.Agent, d.Tool = unique.Make(d.Agent).Value(), unique.Make(d.Tool).Value()
	for i, name := range d.Approvers {
		d.Approvers[i] = unique.Make(name).Value()
	}
	return tenant, d
}
