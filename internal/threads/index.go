package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Index has the threads of all tenants in memory, those of each in the order in which something happened to
// them last. It is safe for concurrent use.
type Index struct {
	log  *stream.Log
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.RWMutex
	tenants  map[string]*tenant // by token
	revision uint64             // up to which this is so
	current  bool               // changes are being heard
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

// order sorts by time, and by name where that is the same.
func (i *item) order(o *item) int {
	return cmp.Or(cmp.Compare(i.at, o.at), strings.Compare(i.token, o.token))
}

// Watch loads the index, and keeps it up to date until Stop, which must be called.
func Watch(ctx context.Context, l *stream.Log) (*Index, error) {
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &Index{log: l, stop: stop, tenants: map[string]*tenant{}}
	loaded := make(chan struct{})
	x.wait.Go(func() { x.follow(live, sync.OnceFunc(func() { close(loaded) })) })
	select {
	case <-loaded:
		return x, nil
	case <-ctx.Done():
		x.Stop()
		return nil, fmt.Errorf("threads: load: %w", context.Cause(ctx))
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

// rewatch is the pause before a watch that broke is begun anew, and check how often it is looked whether one
// still tells what happens: where a node of the log's has died it may say nothing for long.
const (
	rewatch = time.Second
	check   = 15 * time.Second
)

// follow keeps a watch, one after the other.
func (x *Index) follow(ctx context.Context, loaded func()) {
	for ctx.Err() == nil {
		w, err := x.log.Index().Watch(ctx, stream.IndexPrefix+">")
		if err == nil {
			x.take(ctx, w, loaded)
			_ = w.Stop()
		}
		x.mu.Lock()
		x.current = false
		x.mu.Unlock()
		pause := time.NewTimer(rewatch)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// take takes in what a watch tells, until it breaks. What there is at its beginning replaces all that was
// known, at once and sorted once.
func (x *Index) take(ctx context.Context, w jetstream.KeyWatcher, loaded func()) {
	first := map[string]*tenant{}
	looks := time.NewTicker(check)
	defer looks.Stop()
	missed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			before := missed
			if missed = x.behind(ctx); missed && before {
				return
			}
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return
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
}

// behind tells whether there is something that was not told.
func (x *Index) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, check)
	defer cancel()
	last, err := x.log.IndexRevision(ctx)
	x.mu.RLock()
	defer x.mu.RUnlock()
	return err == nil && last > x.revision
}

func (x *Index) note(revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revision)
}

// gather takes in an entry that comes before all are there.
func gather(all map[string]*tenant, entry jetstream.KeyValueEntry) {
	of, token, ok := split(entry.Key())
	if !ok {
		return
	}
	if all[of] == nil {
		all[of] = &tenant{byToken: map[string]*item{}}
	}
	if it := decode(entry, token); it != nil {
		all[of].byToken[it.token] = it
	} else {
		delete(all[of].byToken, token)
	}
}

func (x *Index) replace(all map[string]*tenant) {
	for name, t := range all {
		if len(t.byToken) == 0 {
			delete(all, name)
			continue
		}
		for _, it := range t.byToken {
			t.sorted = append(t.sorted, it)
		}
		slices.SortFunc(t.sorted, (*item).order)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tenants, x.current = all, true
}

// change takes in one change.
func (x *Index) change(entry jetstream.KeyValueEntry) {
	of, token, ok := split(entry.Key())
	if !ok {
		return
	}
	it := decode(entry, token)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = entry.Revision()
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
	if at, found := slices.BinarySearchFunc(t.sorted, old, (*item).order); found {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
}

func (t *tenant) insert(it *item) {
	t.byToken[it.token] = it
	at, _ := slices.BinarySearchFunc(t.sorted, it, (*item).order)
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
	var l stream.Listed
	if json.Unmarshal(entry.Value(), &l) != nil || l.Purged {
		return nil
	}
	return &item{
		token: strings.Clone(token), id: l.ThreadID, agent: unique.Make(l.Agent).Value(), runID: l.RunID,
		state: stream.Status(unique.Make(string(l.Status)).Value()), at: l.UpdatedAt.UnixMilli(),
	}
}
