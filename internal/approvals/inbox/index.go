package inbox

import (
	"context"
	"encoding/json"
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

// Index has the open interrupts and the archive in memory, both sorted by time, so that the API
// answers lists without a request to NATS. Two watches keep it current: the embedded one for the
// open interrupts, and that of archive. The caller must call [Index.Stop]. It is safe for
// concurrent use.
type Index struct {
	*watch.Watch
	store   *Store
	archive *archive

	mu sync.RWMutex
	// pending are the open interrupts, by the tenant's token, sorted by sort key. A change replaces
	// the slice, so that readers need the lock only to get it.
	pending map[string][]*openInterrupt
	// revision is the revision of the bucket that pending has reached.
	revision uint64
}

// openInterrupt is an open interrupt. It is kept small because a node holds all of them.
type openInterrupt struct {
	sortKey    string
	at         time.Time       // of the event that it shows
	raw        json.RawMessage // the Approval, as clients get it
	properties properties
}

// Watch loads the index, and keeps it current until Stop, which the caller must call. It blocks
// until the index is loaded, and fails if ctx ends before that.
func (s *Store) Watch(ctx context.Context) (idx *Index, err error) {
	idx = &Index{store: s}
	source := watch.Source{Log: s.log, Bucket: s.kv, Keys: pendingPrefix + ">"}
	idx.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: idx.load, Take: idx.apply})
	if err != nil {
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	if idx.archive, err = s.watchArchive(ctx); err != nil {
		idx.Watch.Stop()
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	return idx, nil
}

// loading collects the open interrupts during a load of the index, by tenant and sort key. Done
// sorts them once.
type loading struct {
	index *Index
	all   map[string]map[string]jetstream.KeyValueEntry
}

// load begins a load of the index, see [watch.Receiver].
func (idx *Index) load() watch.Loading {
	return &loading{idx, map[string]map[string]jetstream.KeyValueEntry{}}
}

// compareSortKey compares an item with a sort key, for binary searches.
func compareSortKey(a *openInterrupt, sortKey string) int { return strings.Compare(a.sortKey, sortKey) }

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) {
	tenant, sortKey, ok := splitKey(entry.Key())
	if !ok {
		return
	}
	if l.all[tenant] == nil {
		l.all[tenant] = map[string]jetstream.KeyValueEntry{}
	}
	l.all[tenant][sortKey] = entry
}

// Done implements [watch.Loading]: it replaces the index.
func (l *loading) Done(ctx context.Context, revision uint64) {
	sorted := make(map[string][]*openInterrupt, len(l.all))
	for tenant, entries := range l.all {
		for _, sortKey := range slices.Sorted(maps.Keys(entries)) {
			if item := l.index.decodeEntry(ctx, entries[sortKey], sortKey); item != nil {
				sorted[tenant] = append(sorted[tenant], item)
			}
		}
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.pending, l.index.revision = sorted, revision
}

// apply adds one change of the bucket to the index, see [watch.Receiver].
func (idx *Index) apply(ctx context.Context, change jetstream.KeyValueEntry) {
	tenant, sortKey, ok := splitKey(change.Key())
	if !ok {
		return
	}
	item := idx.decodeEntry(ctx, change, sortKey)
	idx.mu.Lock()
	defer idx.mu.Unlock()
	idx.revision = change.Revision()
	items := slices.Clone(idx.pending[tenant])
	at, found := slices.BinarySearchFunc(items, sortKey, compareSortKey)
	switch {
	case item != nil && found:
		items[at] = item
	case item != nil:
		items = slices.Insert(items, at, item)
	case found:
		items = slices.Delete(items, at, at+1)
	}
	if len(items) == 0 {
		delete(idx.pending, tenant)
		return
	}
	idx.pending[tenant] = items
}

// splitKey returns the tenant's token and the sort key in a pending key. ok is false for an invalid
// key.
func splitKey(key string) (tenant, sortKey string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, pendingPrefix), ".")
}

// decodeEntry returns the item of an entry; nil = the key or its thread was deleted, or its value
// is invalid. It copies what it keeps: the entry's memory is a whole message.
func (idx *Index) decodeEntry(ctx context.Context, entry jetstream.KeyValueEntry, sortKey string) *openInterrupt {
	if entry.Operation() != jetstream.KeyValuePut {
		return nil
	}
	value, err := idx.store.log.DecryptEntry(ctx, entry.Key(), entry.Value())
	if err != nil {
		return nil
	}
	var p pending
	var a Approval
	if json.Unmarshal(value, &p) != nil || json.Unmarshal(p.Approval, &a) != nil {
		return nil
	}
	item := &openInterrupt{sortKey: strings.Clone(sortKey), at: p.At, raw: slices.Clone(p.Approval), properties: propertiesOf(&a)}
	item.properties.internStrings()
	return item
}

// internStrings interns the strings that most interrupts have in common, so that each is in memory
// once.
func (p *properties) internStrings() {
	p.agent, p.tool = unique.Make(p.agent).Value(), unique.Make(p.tool).Value()
	for _, names := range [][]string{p.approvers, p.contributors} {
		for i, name := range names {
			names[i] = unique.Make(name).Value()
		}
	}
}

// Decided returns up to limit decided interrupts of a tenant, last decided first, after a page's
// cursor; "" = from the beginning. next is the cursor of the next page; "" = this is the last page.
// Of f, Until and Assignee are not compared. f.Reader may take its time: Decided calls it without a
// lock. Errors: stream.ErrInvalidCursor.
func (idx *Index) Decided(tenant string, f Filter, after string, limit int) (page []Reference, next string, err error) {
	beforeKey, err := parsePageCursor(after)
	if err != nil {
		return nil, "", err
	}
	f.Until, f.Assignee = time.Time{}, nil
	idx.archive.mu.RLock()
	items := slices.Clone(idx.archive.decided[stream.KeyToken(tenant)])
	idx.archive.mu.RUnlock()
	last := ""
	for _, d := range slices.Backward(items) {
		if beforeKey != "" && d.sortKey >= beforeKey || !f.matches(d.properties()) {
			continue
		}
		if len(page) == limit {
			return page, pageCursor(last), nil
		}
		page, last = append(page, d.Reference), d.sortKey
	}
	return page, "", nil
}

// Await blocks until the lists of a tenant show what the audit has about an interrupt: an open one
// with the event's votes, or a resolved one in the archive only. It fails with the cause of ctx.
func (idx *Index) Await(ctx context.Context, tenant string, h *History) error {
	for {
		open, archived := idx.Changed(), idx.archive.Changed()
		if idx.isVisible(stream.KeyToken(tenant), h) {
			return nil
		}
		select {
		case <-open:
		case <-archived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isVisible reports whether the lists are as new as an interrupt's audit, or newer.
func (idx *Index) isVisible(tenant string, h *History) bool {
	if h.Status != StatusOpen {
		resolved := h.Events[len(h.Events)-1].At
		return idx.pendingWith(tenant, sortKeyOf(h.RequestedAt, h.ID)) == nil &&
			(time.Since(resolved) > ArchiveTTL || idx.archive.has(tenant, sortKeyOf(resolved, h.ID)))
	}
	item := idx.pendingWith(tenant, sortKeyOf(h.RequestedAt, h.ID))
	return item == nil || !item.at.Before(h.Events[len(h.Events)-1].At)
}

// AwaitEvent blocks until the list of open interrupts is as new as an event of the feed: who reads
// an event finds in the list what it tells. It fails with the cause of ctx.
func (idx *Index) AwaitEvent(ctx context.Context, tenant string, m *Message) error {
	for {
		changed := idx.Changed()
		if idx.shows(stream.KeyToken(tenant), m) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// shows reports whether the list of open interrupts is as new as an event. The entry of an
// interrupt changes before its event is recorded, so an index that has applied a later change is
// new enough.
func (idx *Index) shows(tenant string, m *Message) bool {
	idx.mu.RLock()
	isLater := idx.revision >= m.Cursor.revision
	idx.mu.RUnlock()
	if isLater {
		return true
	}
	item := idx.pendingWith(tenant, sortKeyOf(m.Event.Approval.RequestedAt, m.Event.Approval.ID))
	if m.Event.Type.Settles() {
		return item == nil
	}
	return item != nil && !item.at.Before(m.Event.At)
}

// pendingWith returns the open interrupt at a sort key; nil = there is none.
func (idx *Index) pendingWith(tenant, sortKey string) *openInterrupt {
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	items := idx.pending[tenant]
	at, found := slices.BinarySearchFunc(items, sortKey, compareSortKey)
	if !found {
		return nil
	}
	return items[at]
}

// Current reports whether the index follows the bucket. If not, the index has an earlier state.
func (idx *Index) Current() bool { return idx.Watch.Current() && idx.archive.Current() }

// Stop ends both watches and waits for their goroutines.
func (idx *Index) Stop() {
	idx.Watch.Stop()
	idx.archive.Stop()
}
