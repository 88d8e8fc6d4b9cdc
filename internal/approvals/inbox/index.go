package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
)

// Index has in memory what is pending, and what is decided and archived, both sorted by time. It is
// safe for concurrent use.
type Index struct {
	*watch.Watch
	store   *Store
	archive *archive

	mu       sync.RWMutex
	pending  map[string][]*item // by the tenant's token, by place
	revision uint64             // up to which this is so
}

// item is an approval that is pending, as small as can be: there may be many.
type item struct {
	place string
	raw   json.RawMessage // the approval
	facts facts
}

// Watch loads what is pending, and keeps it up to date until Stop, which must be called.
func (s *Store) Watch(ctx context.Context) (x *Index, err error) {
	x = &Index{store: s}
	source := watch.Source{Log: s.log, Bucket: s.kv, Keys: pendingPrefix + ">"}
	x.Watch, err = watch.Begin(ctx, source, watch.Copy{Load: x.load, Take: x.apply})
	if err != nil {
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	if x.archive, err = s.watchArchive(ctx); err != nil {
		x.Watch.Stop()
		return nil, fmt.Errorf("inbox: load: %w", err)
	}
	return x, nil
}

// loading is what is pending before all is there, to be sorted once: by tenant and place.
type loading struct {
	index *Index
	all   map[string]map[string]*item
}

func (x *Index) load() watch.Loading { return &loading{x, map[string]map[string]*item{}} }

func byPlace(a *item, place string) int { return strings.Compare(a.place, place) }

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

// apply takes in one change.
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

// split takes a key apart.
func split(key string) (tenant, place string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, pendingPrefix), ".")
}

// decode reads what a key has; nil = nothing, or nothing that can be read.
func decode(entry jetstream.KeyValueEntry, place string) *item {
	if entry.Operation() != jetstream.KeyValuePut {
		return nil
	}
	var p pending
	var a Approval
	if json.Unmarshal(entry.Value(), &p) != nil || json.Unmarshal(p.Approval, &a) != nil {
		return nil
	}
	it := &item{place: strings.Clone(place), raw: slices.Clone(p.Approval), facts: factsOf(&a)}
	it.facts.share()
	return it
}

// share keeps what most approvals have in common once.
func (f *facts) share() {
	f.agent, f.tool, f.requester = unique.Make(f.agent).Value(), unique.Make(f.tool).Value(), unique.Make(f.requester).Value()
	for i, a := range f.approvers {
		f.approvers[i] = unique.Make(a).Value()
	}
}

// Decided returns up to limit decided approvals of a tenant, the one that was decided last first,
// after a page's cursor; "" is the beginning. Of the filter, Agent, Tool and Thread count. It fails
// with stream.ErrInvalidCursor.
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

// Current reports whether changes are being heard.
func (x *Index) Current() bool { return x.Watch.Current() && x.archive.Current() }

// Stop ends the watches of an index.
func (x *Index) Stop() {
	x.Watch.Stop()
	x.archive.Stop()
}
