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
)

// Index has what is pending in memory, sorted by time. It is safe for concurrent use.
type Index struct {
	store *Store
	stop  context.CancelFunc
	wait  sync.WaitGroup

	mu       sync.RWMutex
	pending  map[string][]*item // by the tenant's token, by place
	revision uint64             // up to which this is so
	current  bool               // changes are being heard
}

// item is an approval that is pending, as small as can be: there may be many.
type item struct {
	place string
	raw   json.RawMessage // the approval
	facts facts
}

// Watch loads what is pending, and keeps it up to date until Stop, which must be called.
func (s *Store) Watch(ctx context.Context) (*Index, error) {
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &Index{store: s, stop: stop}
	loaded := make(chan struct{})
	x.wait.Go(func() { x.follow(live, sync.OnceFunc(func() { close(loaded) })) })
	select {
	case <-loaded:
		return x, nil
	case <-ctx.Done():
		x.Stop()
		return nil, fmt.Errorf("inbox: load: %w", context.Cause(ctx))
	}
}

// Stop ends the watch.
func (x *Index) Stop() {
	x.stop()
	x.wait.Wait()
}

// Current tells whether changes are being heard. While they are not, lists are as they were.
func (x *Index) Current() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.current
}

// rewatch is the pause before a watch that broke is begun anew.
const rewatch = time.Second

// follow keeps a watch, one after the other.
func (x *Index) follow(ctx context.Context, loaded func()) {
	for ctx.Err() == nil {
		w, err := x.store.kv.Watch(ctx, pendingPrefix+">")
		if err == nil {
			x.take(ctx, w, loaded)
			_ = w.Stop()
		}
		x.mu.Lock()
		x.current = false
		x.mu.Unlock()
		if err := sleep(ctx, rewatch); err != nil {
			return
		}
	}
}

// check is how often it is looked whether a watch still tells what happens.
const check = 15 * time.Second

// take takes in what a watch tells, until it breaks. What there is at its beginning replaces all that was
// known, at once and sorted once.
//
// A watch that has lost its end on the servers' side, where a node has died, may say nothing for long: it is
// broken, too, if it has not told what was there at the last two looks.
func (x *Index) take(ctx context.Context, w jetstream.KeyWatcher, loaded func()) {
	first := map[string]map[string]*item{}
	looks := time.NewTicker(x.store.check)
	defer looks.Stop()
	missed := false
	for {
		var entry jetstream.KeyValueEntry
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			before := missed
			if missed = x.behind(ctx); missed && before {
				return
			}
			continue
		case e, ok := <-w.Updates():
			if !ok {
				return
			}
			entry = e
		}
		switch {
		case entry == nil:
			x.replace(first)
			first = nil
			loaded()
		case first != nil:
			gather(first, entry)
			x.note(entry.Revision())
		default:
			x.change(entry)
		}
	}
}

// behind tells whether there is something that was not told. Who is asked may be behind as well: then there is
// not.
func (x *Index) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, x.store.check)
	defer cancel()
	last, err := x.store.behind.GetLastMsgForSubject(ctx, x.store.prefix+pendingPrefix+">")
	x.mu.RLock()
	defer x.mu.RUnlock()
	return err == nil && last.Sequence > x.revision
}

func (x *Index) note(revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revision)
}

func byPlace(a *item, place string) int { return strings.Compare(a.place, place) }

// gather takes in an entry that comes before all are there. One that has changed meanwhile comes again.
func gather(all map[string]map[string]*item, entry jetstream.KeyValueEntry) {
	tenant, place, ok := split(entry.Key())
	if !ok {
		return
	}
	if all[tenant] == nil {
		all[tenant] = map[string]*item{}
	}
	if it := decode(entry, place); it != nil {
		all[tenant][it.place] = it
	} else {
		delete(all[tenant], place)
	}
}

func (x *Index) replace(all map[string]map[string]*item) {
	sorted := make(map[string][]*item, len(all))
	for tenant, items := range all {
		if len(items) > 0 {
			sorted[tenant] = slices.SortedFunc(maps.Values(items), func(a, b *item) int { return strings.Compare(a.place, b.place) })
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending, x.current = sorted, true
}

// change takes in one change.
func (x *Index) change(entry jetstream.KeyValueEntry) {
	tenant, place, ok := split(entry.Key())
	if !ok {
		return
	}
	it := decode(entry, place)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = entry.Revision()
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
