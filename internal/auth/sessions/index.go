package sessions

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/index/watch"
)

// index knows the sessions of all API processes, without their secrets. A watch keeps it current.
// It ends the contexts of sessions that have ended. It is safe for concurrent use.
type index struct {
	bucket *bucket
	idle   time.Duration

	mu       sync.Mutex
	revision uint64 // of the last change that the watch has delivered
	sessions map[string]*entry
}

// entry is a session in the index.
type entry struct {
	id, subject, providerSession string
	principal                    auth.Principal
	started                      time.Time
	revision                     uint64 // of the record
	// valid ends with the session, and when its principal changes.
	valid context.Context
	end   context.CancelFunc
	// expiry ends the session at its time, which NATS tells up to a second later.
	expiry *time.Timer
}

// newIndex returns an empty index of a bucket. idle is the idle timeout of sessions.
func newIndex(b *bucket, idle time.Duration) *index {
	return &index{bucket: b, idle: idle, sessions: map[string]*entry{}}
}

// receiver returns the receiver of the watch.
func (x *index) receiver() watch.Receiver {
	return watch.Receiver{
		Load: func() watch.Loading { return &loading{index: x, entries: map[string]jetstream.KeyValueEntry{}} },
		Take: x.take,
	}
}

// loading is the load of an index (see watch.Loading).
type loading struct {
	index   *index
	entries map[string]jetstream.KeyValueEntry // by the session's ID
}

// Take implements watch.Loading.
func (l *loading) Take(e jetstream.KeyValueEntry) {
	l.entries[strings.TrimPrefix(e.Key(), sessionPrefix)] = e
}

// Done implements watch.Loading.
func (l *loading) Done(ctx context.Context, revision uint64) {
	x := l.index
	records := map[string]*record{}
	for id, e := range l.entries {
		if rec := x.recordOf(ctx, e); rec != nil {
			records[id] = rec
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revision)
	for id := range x.sessions {
		if records[id] == nil {
			x.drop(id)
		}
	}
	for id, rec := range records {
		x.put(id, rec)
	}
}

// take applies one change.
func (x *index) take(ctx context.Context, e jetstream.KeyValueEntry) {
	rec := x.recordOf(ctx, e)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, e.Revision())
	id := strings.TrimPrefix(e.Key(), sessionPrefix)
	if rec != nil {
		x.put(id, rec)
	} else {
		x.drop(id)
	}
}

// recordOf returns the record of an entry; nil = the session has ended. It waits for the keys until
// ctx ends: an outage of the keys ends no session.
func (x *index) recordOf(ctx context.Context, e jetstream.KeyValueEntry) *record {
	if e.Operation() != jetstream.KeyValuePut {
		return nil
	}
	value, err := x.bucket.decrypt(ctx, e.Key(), e.Value())
	if err != nil {
		return nil
	}
	return decodeRecord(value, e.Revision())
}

// put adds a session, or changes it. The caller holds the lock.
func (x *index) put(id string, rec *record) {
	lasts := time.Until(rec.ends(x.idle))
	if lasts <= 0 {
		x.drop(id)
		return
	}
	e := x.sessions[id]
	if e != nil && e.revision > rec.revision {
		return
	}
	if e != nil && !reflect.DeepEqual(e.principal, rec.Principal) {
		x.drop(id) // streams must not keep rights that the user has lost
		e = nil
	}
	if e == nil {
		e = &entry{id: id, subject: rec.Subject, principal: rec.Principal, started: rec.Started}
		e.valid, e.end = context.WithCancel(context.Background())
		e.expiry = time.AfterFunc(lasts, func() { x.expire(e) })
		x.sessions[id] = e
	}
	e.providerSession, e.revision = rec.ProviderSession, rec.revision
	e.expiry.Reset(lasts)
}

// drop removes a session, and ends its context. The caller holds the lock.
func (x *index) drop(id string) {
	if e := x.sessions[id]; e != nil {
		e.expiry.Stop()
		e.end()
		delete(x.sessions, id)
	}
}

// expire removes a session whose time has passed.
func (x *index) expire(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sessions[e.id] == e {
		x.drop(e.id)
	}
}

// validity returns the context of a session with the given record; ok is false if the session has
// ended since the record was read.
func (x *index) validity(id string, rec *record) (valid context.Context, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sessions[id] == nil && rec.revision <= x.revision { // the watch has delivered the record, and its end
		return nil, false
	}
	x.put(id, rec)
	if e := x.sessions[id]; e != nil {
		return e.valid, true
	}
	return nil, false
}

// count returns the number of sessions.
func (x *index) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.sessions)
}

// of returns the IDs of the sessions of a subject of the provider, oldest first.
func (x *index) of(subject string) []string {
	return x.matching(func(e *entry) bool { return e.subject == subject })
}

// endedBy returns the IDs of the sessions that a logout token ends.
func (x *index) endedBy(l oidc.Logout) []string {
	return x.matching(func(e *entry) bool {
		return (l.Subject == "" || e.subject == l.Subject) && (l.SessionID == "" || e.providerSession == l.SessionID)
	})
}

// matching returns the IDs of the sessions for which match is true, oldest first.
func (x *index) matching(match func(*entry) bool) []string {
	found := x.entries(match)
	ids := make([]string, len(found))
	for i, e := range found {
		ids[i] = e.id
	}
	return ids
}

// entries returns copies of the sessions for which match is true, oldest first.
func (x *index) entries(match func(*entry) bool) []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []entry
	for _, e := range x.sessions {
		if match(e) {
			found = append(found, *e)
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Or(a.started.Compare(b.started), strings.Compare(a.id, b.id)) })
	return found
}

// close ends all contexts and timers.
func (x *index) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range x.sessions {
		x.drop(id)
	}
}
