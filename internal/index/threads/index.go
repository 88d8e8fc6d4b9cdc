package threads

import (
	"cmp"
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
	"github.com/perdure/perdure/stream"
)

// Index has the threads of all tenants in memory, those of each tenant sorted by the time of their
// last update. The embedded watch keeps it current; the caller must call its Stop. It is safe for
// concurrent use.
type Index struct {
	*watch.Watch
	log *stream.Log

	mu      sync.RWMutex
	tenants map[string]*tenantThreads // by the tenant's token
}

// tenantThreads has the threads of one tenant: by token, and sorted by item.compare, last updated
// at the end. Both contain the same items.
type tenantThreads struct {
	id      string // of the tenant
	byToken map[string]*entry
	sorted  []*entry
	active  int // threads with an active run
	// owners has the number of these threads by their owner, without owners that have none.
	owners  map[string]int
	waiting int // threads that wait for decisions or results
	// unfinished has the IDs of threads whose purge has not ended, by token. They are in no list.
	unfinished map[string]string
}

// statusUnfinished is the status of an entry of tenantThreads.unfinished.
const statusUnfinished stream.Status = "unfinished"

// count adds n to the numbers of threads with the status of an entry.
func (t *tenantThreads) count(item *entry, n int) {
	switch item.status {
	case stream.StatusRunning, stream.StatusPaused:
		t.active += n
		if owner := unique.Handle[access](item.access).Value(); owner.isOwned {
			if t.owners[owner.owner] += n; t.owners[owner.owner] == 0 {
				delete(t.owners, owner.owner)
			}
		}
	case stream.StatusWaiting:
		t.waiting += n
	}
}

// Counts returns the numbers of a tenant's threads: all, those with an active run, and those that
// wait for decisions or results of client tools.
func (idx *Index) Counts(tenant string) (all, active, waiting int) {
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	t := idx.tenants[stream.IndexToken(stream.Token(tenant))]
	if t == nil {
		return 0, 0, 0
	}
	return len(t.byToken), t.active, t.waiting
}

// ActiveOf returns the number of threads with an active run that a subject of a tenant owns.
func (idx *Index) ActiveOf(tenant, subject string) int {
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	if t := idx.tenants[stream.IndexToken(stream.Token(tenant))]; t != nil {
		return t.owners[subject]
	}
	return 0
}

// entry is a thread. It is kept small because a node holds those of all tenants.
type entry struct {
	// token is the thread's ID as a token of a key: the ID itself, or a digest of it.
	token string
	id    string
	agent string
	// runID is the ID of the last run; "" = a fork without a run.
	runID     string
	status    stream.Status
	createdAt int64 // milliseconds since 1970; 0 = unknown
	updatedAt int64 // milliseconds since 1970
	access    Access
	title     string
	metadata  map[string]string
	// text is what searches compare: the folded title and metadata.
	text       string
	waitingFor []stream.WaitKind
	usage      stream.ThreadUsage
	retrying   *stream.Retrying
}

// fold returns a text in the form in which searches ignore case.
func fold(text string) string { return strings.ToLower(text) }

// searched returns the text of a description that searches compare. Its parts are separated by line
// breaks, which no query has.
func searched(d *stream.Description) string {
	parts := []string{d.Title()}
	for _, name := range slices.Sorted(maps.Keys(d.Metadata)) {
		parts = append(parts, name, d.Metadata[name])
	}
	return fold(strings.Join(parts, "\n"))
}

// Access is who may use a thread, in a form that many threads share. Two values are equal if the
// owners and shares are.
type Access unique.Handle[access]

// access is a stream.Access that can be compared.
type access struct {
	owner   string
	isOwned bool
	shares  string // the shares as JSON; "" = none
}

// accessOf returns the shared form.
func accessOf(a *stream.Access) Access {
	var value access
	if a.Owner != nil {
		value.owner, value.isOwned = *a.Owner, true
	}
	if len(a.Shares) > 0 {
		encoded, _ := json.Marshal(a.Shares) // strings and booleans are always encodable
		value.shares = string(encoded)
	}
	return Access(unique.Make(value))
}

// Decode returns who may use the thread.
func (a Access) Decode() stream.Access {
	value := unique.Handle[access](a).Value()
	var decoded stream.Access
	if value.isOwned {
		decoded.Owner = &value.owner
	}
	if value.shares != "" {
		_ = json.Unmarshal([]byte(value.shares), &decoded.Shares) // accessOf has encoded them
	}
	return decoded
}

// AccessTo returns who may use a thread, as the index has it. ok is false if the index does not
// have the thread, or does not follow the bucket: then the log knows.
func (idx *Index) AccessTo(thread stream.Thread) (a Access, ok bool) {
	if !idx.Current() {
		return a, false
	}
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	t := idx.tenants[stream.IndexToken(stream.Token(thread.Tenant))]
	if t == nil {
		return a, false
	}
	item := t.byToken[stream.IndexToken(stream.Token(thread.ID))]
	if item == nil {
		return a, false
	}
	return item.access, true
}

// compare orders items by time, and items of the same millisecond by token.
func (i *entry) compare(o *entry) int {
	return cmp.Or(cmp.Compare(i.updatedAt, o.updatedAt), strings.Compare(i.token, o.token))
}

// Watch loads the index, and keeps it current until Stop, which the caller must call. It blocks
// until the index is loaded, and fails if ctx ends before that.
func Watch(ctx context.Context, l *stream.Log) (idx *Index, err error) {
	idx = &Index{log: l}
	source := watch.Source{Log: l, Bucket: l.Index(), Keys: stream.IndexPrefix + ">"}
	idx.Watch, err = watch.Begin(ctx, source, watch.Receiver{Load: idx.load, Take: idx.apply})
	if err != nil {
		return nil, fmt.Errorf("threads: load: %w", err)
	}
	return idx, nil
}

// loading collects the threads during a load of the index. Done sorts them once.
type loading struct {
	index   *Index
	tenants map[string]*tenantThreads
	// encrypted has the entries that Done decrypts, by key.
	encrypted map[string]jetstream.KeyValueEntry
}

// load begins a load of the index, see [watch.Receiver].
func (idx *Index) load() watch.Loading {
	return &loading{idx, map[string]*tenantThreads{}, map[string]jetstream.KeyValueEntry{}}
}

// Take implements [watch.Loading].
func (l *loading) Take(change jetstream.KeyValueEntry) {
	if stream.IsEncryptedEntry(change.Value()) {
		l.encrypted[change.Key()] = change
		return
	}
	delete(l.encrypted, change.Key())
	if tenant, token, ok := splitKey(change.Key()); ok {
		item, id := l.index.decodeEntry(context.Background(), change, token)
		l.put(tenant, id, token, item)
	}
}

// put adds a thread of the tenant with a token and an ID; item nil = it removes the thread.
func (l *loading) put(tenant, id, token string, item *entry) {
	t := l.tenants[tenant]
	if t == nil {
		t = newTenant(tenant)
		l.tenants[tenant] = t
	}
	t.id = cmp.Or(id, t.id)
	delete(t.byToken, token)
	t.set(token, item)
}

// newTenant returns a tenant without threads, by its token.
func newTenant(token string) *tenantThreads {
	t := &tenantThreads{byToken: map[string]*entry{}, unfinished: map[string]string{}, owners: map[string]int{}}
	if !strings.HasPrefix(token, "=") {
		t.id = strings.Clone(token)
	}
	return t
}

// set puts a thread into byToken or unfinished; nil = into neither. byToken must not have it.
func (t *tenantThreads) set(token string, item *entry) {
	delete(t.unfinished, token)
	switch {
	case item == nil:
	case item.status == statusUnfinished:
		t.unfinished[item.token] = item.id
	default:
		t.byToken[item.token] = item
	}
}

// isEmpty reports whether the tenant has no threads.
func (t *tenantThreads) isEmpty() bool { return len(t.byToken)+len(t.unfinished) == 0 }

// maxDecryptions bounds the concurrent decryptions of a load: each requests the key of a thread.
const maxDecryptions = 64

// decrypt adds the encrypted entries. It returns early if ctx ends.
func (l *loading) decrypt(ctx context.Context) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	turns := make(chan struct{}, maxDecryptions)
	for key, change := range l.encrypted {
		tenant, token, ok := splitKey(key)
		if !ok {
			continue
		}
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			item, id := l.index.decodeEntry(ctx, change, token)
			mu.Lock()
			defer mu.Unlock()
			l.put(tenant, id, token, item)
		})
	}
	wait.Wait()
}

// Done implements [watch.Loading]: it replaces the index.
func (l *loading) Done(ctx context.Context, _ uint64) {
	l.decrypt(ctx)
	for name, t := range l.tenants {
		if t.isEmpty() {
			delete(l.tenants, name)
			continue
		}
		for _, item := range t.byToken {
			t.sorted = append(t.sorted, item)
			t.count(item, 1)
		}
		slices.SortFunc(t.sorted, (*entry).compare)
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	l.index.tenants = l.tenants
}

// apply applies one change of the bucket to the index, see [watch.Receiver].
func (idx *Index) apply(ctx context.Context, change jetstream.KeyValueEntry) {
	tenant, token, ok := splitKey(change.Key())
	if !ok {
		return
	}
	item, id := idx.decodeEntry(ctx, change, token)
	idx.mu.Lock()
	defer idx.mu.Unlock()
	t := idx.tenants[tenant]
	if t == nil {
		t = newTenant(tenant)
		idx.tenants[tenant] = t
	}
	t.id = cmp.Or(id, t.id)
	t.remove(token)
	t.set(token, item)
	t.sort(token)
	if t.isEmpty() {
		delete(idx.tenants, tenant)
	}
}

// remove removes the thread with a token, if there is one.
func (t *tenantThreads) remove(token string) {
	old := t.byToken[token]
	if old == nil {
		return
	}
	delete(t.byToken, token)
	t.count(old, -1)
	if at, found := slices.BinarySearchFunc(t.sorted, old, (*entry).compare); found {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
}

// sort adds the thread of byToken with a token, if there is one, to sorted, which must not have it.
func (t *tenantThreads) sort(token string) {
	item := t.byToken[token]
	if item == nil {
		return
	}
	t.count(item, 1)
	at, _ := slices.BinarySearchFunc(t.sorted, item, (*entry).compare)
	t.sorted = slices.Insert(t.sorted, at, item)
}

// splitKey returns the tokens of the tenant and the thread in a key. ok is false for an invalid
// key.
func splitKey(key string) (tenant, token string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, stream.IndexPrefix), ".")
}

// decodeEntry returns the item of an entry; nil = the thread was purged, the key deleted, or the
// value invalid. tenant is the ID of the tenant if the key has only a digest of it. decodeEntry
// interns agents and statuses, which many threads have in common.
func (idx *Index) decodeEntry(ctx context.Context, change jetstream.KeyValueEntry, token string) (item *entry, tenant string) {
	if change.Operation() != jetstream.KeyValuePut {
		return nil, ""
	}
	l, err := idx.log.DecodeEntry(ctx, change.Key(), change.Value())
	switch {
	case err != nil:
		return nil, ""
	case l.Unfinished:
		return &entry{token: strings.Clone(token), id: l.ThreadID, status: statusUnfinished}, l.Tenant
	case l.Purged:
		return nil, ""
	}
	item = &entry{
		token: strings.Clone(token), id: l.ThreadID, agent: unique.Make(l.Agent).Value(), runID: l.RunID,
		status: stream.Status(unique.Make(string(l.Status)).Value()), updatedAt: l.UpdatedAt.UnixMilli(), access: accessOf(&l.Access),
		title: l.Title(), metadata: l.Metadata, text: searched(&l.Description), waitingFor: l.WaitingFor, usage: l.Usage, retrying: l.Retrying,
	}
	item.usage.Currency = unique.Make(l.Usage.Currency).Value()
	if !l.CreatedAt.IsZero() {
		item.createdAt = l.CreatedAt.UnixMilli()
	}
	return item, l.Tenant
}
