package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Waits has the open waits of all tenants in memory. The embedded watch keeps it current; the caller
// must call its Stop. It is safe for concurrent use.
type Waits struct {
	*watch.Watch
	store *Store

	mu sync.RWMutex
	// byKey has the waits by their keys, byTenant those of each tenant, and byEvent those for events by
	// tenant and name.
	byKey    map[string]*openWait
	byTenant map[string]map[string]*openWait
	byEvent  map[eventName]map[string]*openWait
	// revision is the revision of the bucket that the waits have reached.
	revision uint64
}

// eventName is the name of an event of a tenant.
type eventName struct{ tenant, name string }

// openWait is a wait with the values that events are compared with.
type openWait struct {
	*Wait
	match map[string]json.RawMessage
}

// newWaits returns waits without entries.
func newWaits(s *Store) *Waits {
	w := &Waits{store: s}
	w.clear()
	return w
}

// clear removes all waits.
func (w *Waits) clear() {
	w.byKey, w.byTenant, w.byEvent = map[string]*openWait{}, map[string]map[string]*openWait{}, map[eventName]map[string]*openWait{}
}

// Watch loads the waits. It blocks until they are loaded, and fails if ctx ends before that.
func (s *Store) Watch(ctx context.Context) (w *Waits, err error) {
	w = newWaits(s)
	source := watch.Source{Log: s.log, Bucket: s.waits, Keys: waitPrefix + ">"}
	w.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: w.load, Take: w.take})
	if err != nil {
		return nil, fmt.Errorf("events: load: %w", err)
	}
	return w, nil
}

// loadingWaits is a load of the waits (see watch.Loading).
type loadingWaits struct {
	waits *Waits
	all   map[string]jetstream.KeyValueEntry
}

func (w *Waits) load() watch.Loading { return &loadingWaits{w, map[string]jetstream.KeyValueEntry{}} }

// Take implements [watch.Loading].
func (l *loadingWaits) Take(entry jetstream.KeyValueEntry) { l.all[entry.Key()] = entry }

// Done implements [watch.Loading]: it replaces the waits.
func (l *loadingWaits) Done(ctx context.Context, revision uint64) {
	decoded := make(map[string]*openWait, len(l.all))
	for key, entry := range l.all {
		if open := l.waits.decode(ctx, entry); open != nil {
			decoded[key] = open
		}
	}
	l.waits.mu.Lock()
	defer l.waits.mu.Unlock()
	l.waits.clear()
	for key, open := range decoded {
		l.waits.set(key, open)
	}
	l.waits.revision = revision
}

// take applies one change.
func (w *Waits) take(ctx context.Context, change jetstream.KeyValueEntry) {
	open := w.decode(ctx, change)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(strings.Clone(change.Key()), open)
	w.revision = max(w.revision, change.Revision())
}

// set replaces the wait of a key; nil = it removes the wait.
func (w *Waits) set(key string, open *openWait) {
	if old := w.byKey[key]; old != nil {
		delete(w.byKey, key)
		remove(w.byTenant, old.Tenant, key)
		remove(w.byEvent, eventName{old.Tenant, old.Event}, key)
	}
	if open == nil {
		return
	}
	w.byKey[key] = open
	add(w.byTenant, open.Tenant, key, open)
	if open.Kind == stream.WaitEvent {
		add(w.byEvent, eventName{open.Tenant, open.Event}, key, open)
	}
}

// add adds a wait to those of a group.
func add[G comparable](groups map[G]map[string]*openWait, group G, key string, open *openWait) {
	if groups[group] == nil {
		groups[group] = map[string]*openWait{}
	}
	groups[group][key] = open
}

// remove removes a wait from those of a group. It does nothing if the group has no such wait.
func remove[G comparable](groups map[G]map[string]*openWait, group G, key string) {
	if delete(groups[group], key); len(groups[group]) == 0 {
		delete(groups, group)
	}
}

// decode returns the wait of an entry; nil = it was removed, or its thread was deleted.
func (w *Waits) decode(ctx context.Context, entry jetstream.KeyValueEntry) *openWait {
	if entry.Operation() != jetstream.KeyValuePut {
		return nil
	}
	value, err := w.store.log.DecryptEntry(ctx, entry.Key(), entry.Value())
	if err != nil {
		return nil
	}
	wait, err := decodeWait(value)
	if err != nil {
		return nil
	}
	match, err := canonicalMatch(wait.Match)
	if err != nil {
		return nil
	}
	return &openWait{wait, match}
}

// catchUp blocks until the waits are as new as the bucket is at the call.
func (w *Waits) catchUp(ctx context.Context) error {
	last, err := w.store.log.LastRevision(ctx, w.store.waits, waitPrefix+">")
	if err != nil {
		return unavailable(err)
	}
	for {
		changed := w.Changed()
		w.mu.RLock()
		isCurrent := w.revision >= last
		w.mu.RUnlock()
		if isCurrent {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// has reports whether a wait is open, by its key.
func (w *Waits) has(key string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.byKey[key] != nil
}

// matching returns the waits that an event may end, in the order in which they opened.
func (w *Waits) matching(e *Event) []*Wait {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var data any
	var found []*Wait
	for _, open := range w.byEvent[eventName{e.Tenant, e.Type}] {
		if data == nil && len(open.match) > 0 {
			data = decodeExact(e.Data)
		}
		if matches(open.match, data) {
			found = append(found, open.Wait)
		}
	}
	slices.SortFunc(found, func(a, b *Wait) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// Counts returns the numbers of open waits of all tenants by their kinds, all of which it has.
func (w *Waits) Counts() map[string]int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	counts := map[string]int64{string(stream.WaitTimer): 0, string(stream.WaitEvent): 0}
	for _, open := range w.byKey {
		counts[string(open.Kind)]++
	}
	return counts
}

// List returns the waits of a tenant that a filter accepts, in the order of their positions: by the time
// at which they end.
func (w *Waits) List(tenant string, filter func(*Wait) bool) []*Wait {
	w.mu.RLock()
	all := slices.Collect(maps.Values(w.byTenant[tenant]))
	w.mu.RUnlock()
	var found []*Wait
	for _, open := range all {
		if filter(open.Wait) {
			found = append(found, open.Wait)
		}
	}
	slices.SortFunc(found, func(a, b *Wait) int {
		return cmp.Or(cmp.Compare(a.Until.UnixMilli(), b.Until.UnixMilli()), cmp.Compare(a.ID, b.ID))
	})
	return found
}
