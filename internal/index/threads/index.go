package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Index has the threads of all tenants in memory, those of each tenant sorted by the time of their
// last update. The embedded watch keeps it current; the caller must call its Stop. It is safe for
// concurrent use.
type Index struct {
	*watch.Watch

	mu      sync.RWMutex
	tenants map[string]*tenant // by the tenant's token
}

// tenant has the threads of one tenant: by token, and sorted by item.compare, last updated at the
// end. Both contain the same items.
type tenant struct {
	byToken map[string]*item
	sorted  []*item
}

// item is a thread. It is kept small because a node holds those of all tenants.
type item struct {
	// token is the thread's ID as a token of a key: the ID itself, or a digest of it.
	token string
	id    string
	agent string
	// runID is the ID of the last run; "" = a fork without a run.
	runID string
	state stream.Status
	at    int64 // milliseconds since 1970
}

// compare orders items by time, and items of the same millisecond by token.
func (i *item) compare(o *item) int {
	return cmp.Or(cmp.Compare(i.at, o.at), strings.Compare(i.token, o.token))
}

// Watch loads the index, and keeps it current until Stop, which the caller must call. It blocks
// until the index is loaded, and fails if ctx ends before that.
func Watch(ctx context.Context, l *stream.Log) (x *Index, err error) {
	x = &Index{}
	source := watch.Source{Log: l, Bucket: l.Index(), Keys: stream.IndexPrefix + ">"}
	x.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: x.load, Take: x.apply})
	if err != nil {
		return nil, fmt.Errorf("threads: load: %w", err)
	}
	return x, nil
}

// loading collects the threads during a load of the index. Done sorts them once.
type loading struct {
	index   *Index
	tenants map[string]*tenant
}

// load begins a load of the index, see [watch.Receiver].
func (x *Index) load() watch.Loading { return &loading{x, map[string]*tenant{}} }

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) {
	of, token, ok := split(entry.Key())
	if !ok {
		return
	}
	if l.tenants[of] == nil {
		l.tenants[of] = &tenant{byToken: map[string]*item{}}
	}
	if it := decode(entry, token); it != nil {
		l.tenants[of].byToken[it.token] = it
	} else {
		delete(l.tenants[of].byToken, token)
	}
}

// Done implements [watch.Loading]: it replaces the index.
func (l *loading) Done(context.Context, uint64) {
	for name, t := range l.tenants {
		if len(t.byToken) == 0 {
			delete(l.tenants, name)
			continue
		}
		for _, it := range t.byToken {
			t.sorted = append(t.sorted, it)
		}
		slices.SortFunc(t.sorted, (*item).compare)
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.tenants = l.tenants
}

// apply applies one change of the bucket to the index, see [watch.Receiver].
func (x *Index) apply(_ context.Context, change jetstream.KeyValueEntry) {
	of, token, ok := split(change.Key())
	if !ok {
		return
	}
	it := decode(change, token)
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tenants[of]
	if t == nil {
		t = &tenant{byToken: map[string]*item{}}
		x.tenants[of] = t
	}
	t.remove(token)
	if it != nil {
		t.insert(it)
	}
	if len(t.byToken) == 0 {
		delete(x.tenants, of)
	}
}

// remove removes the thread with a token, if there is one.
func (t *tenant) remove(token string) {
	old := t.byToken[token]
	if old == nil {
		return
	}
	delete(t.byToken, token)
	if at, found := slices.BinarySearchFunc(t.sorted, old, (*item).compare); found {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
}

// insert adds a thread, whose token the tenant must not have.
func (t *tenant) insert(it *item) {
	t.byToken[it.token] = it
	at, _ := slices.BinarySearchFunc(t.sorted, it, (*item).compare)
	t.sorted = slices.Insert(t.sorted, at, it)
}

// split returns the tokens of the tenant and the thread in a key. ok is false for an invalid key.
func split(key string) (tenant, token string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, stream.IndexPrefix), ".")
}

// decode returns the item of an entry; nil = the thread was purged, the key deleted, or the value
// invalid. It interns agents and statuses, which many threads have in common.
func decode(entry jetstream.KeyValueEntry, token string) *item {
	if entry.Operation() != jetstream.KeyValuePut {
		return nil
	}
	var l stream.IndexEntry
	if json.Unmarshal(entry.Value(), &l) != nil || l.Purged {
		return nil
	}
	return &item{
		token: strings.Clone(token), id: l.ThreadID, agent: unique.Make(l.Agent).Value(), runID: l.RunID,
		state: stream.Status(unique.Make(string(l.Status)).Value()), at: l.UpdatedAt.UnixMilli(),
	}
}
