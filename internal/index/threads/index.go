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

// Index has the threads of all tenants in memory, those of each in the order in which something
// happened to them last. It is safe for concurrent use.
type Index struct {
	*watch.Watch

	mu      sync.RWMutex
	tenants map[string]*tenant // by token
}

// tenant has what one tenant's threads are: by token, and sorted, the newest last.
type tenant struct {
	byToken map[string]*item
	sorted  []*item
}

// item is a thread, as small as can be: there may be many.
type item struct {
	token string
	id    string
	agent string
	runID string
	state stream.Status
	at    int64 // milliseconds since 1970
}

// compare sorts by time, and by name where that is the same.
func (i *item) compare(o *item) int {
	return cmp.Or(cmp.Compare(i.at, o.at), strings.Compare(i.token, o.token))
}

// Watch loads the index, and keeps it up to date until Stop, which must be called.
func Watch(ctx context.Context, l *stream.Log) (x *Index, err error) {
	x = &Index{}
	source := watch.Source{Log: l, Bucket: l.Index(), Keys: stream.IndexPrefix + ">"}
	x.Watch, err = watch.Begin(ctx, source, watch.Copy{Load: x.load, Take: x.apply})
	if err != nil {
		return nil, fmt.Errorf("threads: load: %w", err)
	}
	return x, nil
}

// loading are the threads before all are there, to be sorted once.
type loading struct {
	index   *Index
	tenants map[string]*tenant
}

func (x *Index) load() watch.Loading { return &loading{x, map[string]*tenant{}} }

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

// apply takes in one change.
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

func (t *tenant) insert(it *item) {
	t.byToken[it.token] = it
	at, _ := slices.BinarySearchFunc(t.sorted, it, (*item).compare)
	t.sorted = slices.Insert(t.sorted, at, it)
}

// split takes a key apart.
func split(key string) (tenant, token string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, stream.IndexPrefix), ".")
}

// decode reads an entry; nil = there is no such thread, or nothing that can be read.
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
