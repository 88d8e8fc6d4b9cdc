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
	// pending are the open interrupts, by the tenant's token, sorted by place.
	pending map[string][]*item
	// revision is the revision of the bucket that pending has reached.
	revision uint64
}

// item is an open interrupt. It is kept small because a node holds all of them.
type item struct {
	place string
	at    time.Time       // of the event that it shows
	raw   json.RawMessage // the Approval, as clients get it
	facts facts
}

// Watch loads the index, and keeps it current until Stop, which the caller must call. It blocks
// until the index is loaded, and fails if ctx ends before that.
func (s *Store) Watch(ctx context.Context) (x *Index, err error) {
	x = &Index{store: s}
	source := watch.Source{Log: s.log, Bucket: s.kv, Keys: pendingPrefix + ">"}
	x.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: x.load, Take: x.apply})
	if err != nil {
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	if x.archive, err = s.watchArchive(ctx); err != nil {
		x.Watch.Stop()
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	return x, nil
}

// loading collects the open interrupts during a load of the index, by tenant and place. Done sorts
// them once.
type loading struct {
	index *Index
	all   map[string]map[string]*item
}

// load begins a load of the index, see [watch.Receiver].
func (x *Index) load() watch.Loading { return &loading{x, map[string]map[string]*item{}} }

// byPlace compares an item with a place, for binary searches.
func byPlace(a *item, place string) int { return strings.Compare(a.place, place) }

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) {
	tenant, place, ok := split(entry.Key())
	if !ok {
		return
	}
	if l.all[tenant] == nil {
		l.all[tenant] = map[string]*item{}
	}
	if it := decode(entry, place); it != nil {
		l.all[tenant][it.place] = it
	} else {
		delete(l.all[tenant], place)
	}
}

// Done implements [watch.Loading]: it replaces the index.
func (l *loading) Done(_ context.Context, revision uint64) {
	sorted := make(map[string][]*item, len(l.all))
	for tenant, items := range l.all {
		if len(items) > 0 {
			sorted[tenant] = slices.SortedFunc(maps.Values(items), func(a, b *item) int { return strings.Compare(a.place, b.place) })
		}
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.pending, l.index.revision = sorted, revision
}

// apply adds one change of the bucket to the index, see [watch.Receiver].
func (x *Index) apply(_ context.Context, change jetstream.KeyValueEntry) {
	tenant, place, ok := split(change.Key())
	if !ok {
		return
	}
	it := decode(change, place)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = change.Revision()
	items := x.pending[tenant]
	at, found := slices.BinarySearchFunc(items, place, byPlace)
	switch {
	case it != nil && found:
		items[at] = it
	case it != nil:
		items = slices.Insert(items, at, it)
	case found:
		items = slices.Delete(items, at, at+1)
	}
	if len(items) == 0 {
		delete(x.pending, tenant)
		return
	}
	x.pending[tenant] = items
}

// split returns the tenant's token and the place in a pending key. ok is false for an invalid key.
func split(key string) (tenant, place string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, pendingPrefix), ".")
}

// decode returns the item of an entry; nil = the key was deleted, or its value is invalid. It
// copies what it keeps: the entry's memory is a whole message.
func decode(entry jetstream.KeyValueEntry, place string) *item {
	if entry.Operation() != jetstream.KeyValuePut {
		return nil
	}
	var p pending
	var a Approval
	if json.Unmarshal(entry.Value(), &p) != nil || json.Unmarshal(p.Approval, &a) != nil {
		return nil
	}
	it := &item{place: strings.Clone(place), at: p.At, raw: slices.Clone(p.Approval), facts: factsOf(&a)}
	it.facts.share()
	return it
}

// share interns the strings that most interrupts have in common, so that each is in memory once.
func (f *facts) share() {
	f.agent, f.tool, f.requester = unique.Make(f.agent).Value(), unique.Make(f.tool).Value(), unique.Make(f.requester).Value()
	for i, a := range f.approvers {
		f.approvers[i] = unique.Make(a).Value()
	}
}

// Decided returns up to limit decided interrupts of a tenant, last decided first, after a page's
// cursor; "" = from the beginning. next is the cursor of the next page; "" = this is the last page.
// Of q, only Agent, Tool and Thread are compared. Errors: stream.ErrInvalidCursor.
func (x *Index) Decided(tenant string, q Filter, after string, limit int) (page []Reference, next string, err error) {
	before, err := placeAfter(after)
	if err != nil {
		return nil, "", err
	}
	x.archive.mu.RLock()
	defer x.archive.mu.RUnlock()
	last := ""
	for _, d := range slices.Backward(x.archive.decided[token(tenant)]) {
		if before != "" && d.place >= before || !q.picks(&facts{thread: d.Thread, agent: d.Agent, tool: d.Tool}) {
			continue
		}
		if len(page) == limit {
			return page, pageCursor(last), nil
		}
		page, last = append(page, d.Reference), d.place
	}
	return page, "", nil
}

// Await blocks until the lists of a tenant show what the audit has about an interrupt: an open one
// with the event's votes, or a resolved one in the archive only. It fails with the cause of ctx.
func (x *Index) Await(ctx context.Context, tenant string, h *History) error {
	for {
		open, archived := x.Changed(), x.archive.Changed()
		if x.shows(token(tenant), h) {
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

// shows reports whether the lists are as new as an interrupt's audit, or newer.
func (x *Index) shows(tenant string, h *History) bool {
	if h.Status != StatusOpen {
		resolved := h.Events[len(h.Events)-1].At
		return x.pendingAt(tenant, placeOf(h.RequestedAt, h.ID)) == nil &&
			(time.Since(resolved) > Archived || x.archive.has(tenant, placeOf(resolved, h.ID)))
	}
	it := x.pendingAt(tenant, placeOf(h.RequestedAt, h.ID))
	return it == nil || !it.at.Before(h.Events[len(h.Events)-1].At)
}

// pendingAt returns the open interrupt at a place; nil = there is none.
func (x *Index) pendingAt(tenant, place string) *item {
	x.mu.RLock()
	defer x.mu.RUnlock()
	items := x.pending[tenant]
	at, found := slices.BinarySearchFunc(items, place, byPlace)
	if !found {
		return nil
	}
	return items[at]
}

// Current reports whether the index follows the bucket. If not, the index has an earlier state.
func (x *Index) Current() bool { return x.Watch.Current() && x.archive.Current() }

// Stop ends both watches and waits for their goroutines.
func (x *Index) Stop() {
	x.Watch.Stop()
	x.archive.Stop()
}
