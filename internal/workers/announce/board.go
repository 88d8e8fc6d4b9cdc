package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/stream"
)

// Board has the announcements of all workers in memory, and the schemas and descriptions that were
// used. Watch makes it; the caller must call Stop. It is safe for concurrent use.
type Board struct {
	watch    *watch.Watch
	lifetime context.Context // ends with Stop; bounds reads that have no context of a caller
	stop     context.CancelFunc
	now      func() time.Time
	schemas  jetstream.KeyValue
	compiled sync.Map // digest → *tools.Schema; values of a digest never change
	offers   sync.Map // digest → tools.Tool; values of a digest never change

	mu      sync.Mutex
	workers map[string]announcement // by key of the bucket
	keys    map[string]announcedKey // by ID
}

// announcement is the last announcement of a worker, and when this process received it. find
// compares that time with announcementTTL: the expiry of a key by the bucket's TTL is not sent to
// watches.
type announcement struct {
	announcedNames
	receivedAt time.Time
}

// announcedKey is a public key, and when this process has received the last announcement of it.
type announcedKey struct {
	key    assertion.PublicKey
	seenAt time.Time
}

// Watch reads the announcements, and follows them until Stop, which the caller must call. It blocks
// until all present announcements are read.
func Watch(ctx context.Context, l *stream.Log) (*Board, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	described, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	b := &Board{now: time.Now, schemas: described, keys: map[string]announcedKey{}}
	b.lifetime, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	b.watch, err = watch.Begin(ctx, watch.Source{Log: l, Bucket: kv, Keys: ">"}, watch.Receiver{Load: b.load, Take: b.apply})
	if err != nil {
		b.stop()
		return nil, fmt.Errorf("announce: watch: %w", err)
	}
	return b, nil
}

// Stop ends the watch and waits for its goroutine.
func (b *Board) Stop() {
	b.stop()
	b.watch.Stop()
}

// loading collects the announcements during a load of the board.
type loading struct {
	board   *Board
	workers map[string]announcement
}

// load begins a load of the board, see [watch.Receiver].
func (b *Board) load() watch.Loading { return &loading{b, map[string]announcement{}} }

// Take implements [watch.Loading].
func (l *loading) Take(entry jetstream.KeyValueEntry) { update(l.workers, entry, l.board.now()) }

// Done implements [watch.Loading]: it replaces the announcements.
func (l *loading) Done(context.Context, uint64) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	l.board.workers = l.workers
	l.board.noteKeys()
}

// apply applies one change of the bucket to the board, see [watch.Receiver].
func (b *Board) apply(_ context.Context, change jetstream.KeyValueEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	update(b.workers, change, b.now())
	b.noteKeys()
}

// update stores the announcement of an entry, or removes that of a deleted key. An invalid value
// counts as no announcement.
func update(workers map[string]announcement, entry jetstream.KeyValueEntry, now time.Time) {
	delete(workers, entry.Key())
	var announced announcedNames
	if entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &announced) == nil {
		workers[entry.Key()] = announcement{announced, now}
	}
}

// Missing returns those of an agent's tools, in their order, that no worker announces. It never
// returns patterns, which may match nothing, nor names with a prefix (client tools, tools of MCP
// servers, agents).
func (b *Board) Missing(tools []string) []string {
	var missing []string
	for _, tool := range tools {
		if !strings.ContainsAny(tool, "*:") && !b.isAnnounced(tool) {
			missing = append(missing, tool)
		}
	}
	return missing
}

// Known returns the names that workers announce, of tools, MCP servers, programs, configured model
// providers and scripts; a name may occur more than once.
func (b *Board) Known() agents.Names {
	var names agents.Names
	for _, n := range b.current() {
		for _, t := range n.Tools {
			if names.Tools = append(names.Tools, t.Name); t.Server != "" {
				names.Servers = append(names.Servers, t.Server)
			}
		}
		names.Programs = append(names.Programs, n.Programs...)
		names.Providers = append(names.Providers, n.Providers...)
		names.Scripts = append(names.Scripts, n.Scripts...)
	}
	return names
}

// Present is a worker whose announcement has not expired.
type Present struct {
	Worker
	Tools    []string // sorted
	Programs []string // sorted
	Circuits []Circuit
	// SeenAt is when this process received the last announcement. A live worker sends one every 10 s.
	SeenAt time.Time
}

// Workers returns the workers that announce themselves, sorted by name. A worker that has stopped is
// missing at once, and one that has died after 30 s.
func (b *Board) Workers() []Present {
	workers := []Present{}
	for _, n := range b.current() {
		present := Present{Worker: n.Worker, Tools: []string{}, Programs: n.Programs, Circuits: n.Circuits, SeenAt: n.receivedAt}
		for _, t := range n.Tools {
			present.Tools = append(present.Tools, t.Name)
		}
		slices.Sort(present.Tools)
		workers = append(workers, present)
	}
	slices.SortFunc(workers, func(a, b Present) int { return strings.Compare(a.Name, b.Name) })
	return workers
}

// current returns the announcements that have not expired.
func (b *Board) current() []announcement {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []announcement
	for _, n := range b.workers {
		if b.now().Sub(n.receivedAt) < announcementTTL {
			all = append(all, n)
		}
	}
	return all
}

// isAnnounced reports whether a worker announces a tool.
func (b *Board) isAnnounced(tool string) bool {
	return len(b.find(func(t Tool) bool { return t.Name == tool })) > 0
}
