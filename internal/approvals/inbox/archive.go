package inbox

import (
	"context"
	"encoding/json"
	"errors"
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

// Archived is how long the archive lists a decided approval. The thread's audit has it for as long
// as there is the thread.
const Archived = 30 * 24 * time.Hour

const decidedPrefix = "decided."

// Reference names an approval that is decided: the log has what it says.
type Reference struct {
	ID     string `json:"id"`
	Thread string `json:"thread"`
	Agent  string `json:"agent"`
	Tool   string `json:"tool"`
}

func decidedKey(tenant string, e *Event) string {
	return decidedPrefix + token(tenant) + "." + placeOf(e.At, e.Approval.ID)
}

// Archive lists an approval as decided by an event, once, until Archived has passed since then.
func (s *Store) Archive(ctx context.Context, tenant string, e *Event) error {
	left := time.Until(e.At.Add(Archived)).Truncate(time.Second)
	if left <= 0 {
		return nil
	}
	a := &e.Approval
	value, err := json.Marshal(Reference{ID: a.ID, Thread: a.ThreadID, Agent: a.Agent, Tool: a.ToolName})
	if err != nil {
		return fmt.Errorf("inbox: encode: %w", err)
	}
	_, err = s.kv.Create(ctx, decidedKey(tenant, e), value, jetstream.KeyTTL(left))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return asUnavailable(err)
}

// archive has what is decided in memory, sorted by time. It is safe for concurrent use.
type archive struct {
	*watch.Watch

	mu      sync.RWMutex
	decided map[string][]*archived // by the tenant's token, the oldest first
}

// archived is a decided approval of the archive, by its place.
type archived struct {
	place string
	Reference
}

func (s *Store) watchArchive(ctx context.Context) (x *archive, err error) {
	x = &archive{}
	source := watch.Source{Log: s.log, Bucket: s.kv, Keys: decidedPrefix + ">"}
	x.Watch, err = watch.Begin(ctx, source, watch.Copy{Load: x.load, Take: x.apply})
	return x, err
}

// archiving is what is decided before all is there.
type archiving struct {
	archive *archive
	all     map[string]map[string]*archived
}

func (x *archive) load() watch.Loading { return &archiving{x, map[string]map[string]*archived{}} }

func (l *archiving) Take(entry jetstream.KeyValueEntry) {
	tenant, d := decodeArchived(entry)
	if d == nil {
		return
	}
	if l.all[tenant] == nil {
		l.all[tenant] = map[string]*archived{}
	}
	if d.ID == "" {
		delete(l.all[tenant], d.place)
		return
	}
	l.all[tenant][d.place] = d
}

func (l *archiving) Done(context.Context, uint64) {
	sorted := make(map[string][]*archived, len(l.all))
	for tenant, items := range l.all {
		sorted[tenant] = slices.SortedFunc(maps.Values(items), func(a, b *archived) int { return strings.Compare(a.place, b.place) })
	}
	l.archive.mu.Lock()
	defer l.archive.mu.Unlock()
	l.archive.decided = sorted
}

func (x *archive) apply(_ context.Context, change jetstream.KeyValueEntry) {
	tenant, d := decodeArchived(change)
	if d == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.decided == nil {
		x.decided = map[string][]*archived{}
	}
	items := x.decided[tenant]
	at, found := slices.BinarySearchFunc(items, d.place, func(a *archived, place string) int { return strings.Compare(a.place, place) })
	switch {
	case d.ID == "" && found:
		items = slices.Delete(items, at, at+1)
	case d.ID != "" && !found:
		items = slices.Insert(items, at, d)
	}
	x.decided[tenant] = items
}

// decodeArchived reads an entry; one without an ID is gone, nil cannot be read.
func decodeArchived(entry jetstream.KeyValueEntry) (tenant string, d *archived) {
	tenant, place, ok := strings.Cut(strings.TrimPrefix(entry.Key(), decidedPrefix), ".")
	if !ok {
		return "", nil
	}
	d = &archived{place: strings.Clone(place)}
	if entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &d.Reference) != nil {
		return "", nil
	}
	d.Agent, d.Tool = unique.Make(d.Agent).Value(), unique.Make(d.Tool).Value()
	return tenant, d
}
