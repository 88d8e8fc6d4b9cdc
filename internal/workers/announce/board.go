package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Board has what all workers announce. It is safe for concurrent use.
type Board struct {
	watch   *watch.Watch
	life    context.Context // ends with Stop
	stop    context.CancelFunc
	now     func() time.Time
	schemas jetstream.KeyValue
	known   sync.Map // digest → *tools.Schema; they never change
	offers  sync.Map // digest → tools.Tool; neither do they

	mu      sync.Mutex
	workers map[string]notice
}

// notice is what a worker said, and when that was heard: what ends by itself is told to nobody.
type notice struct {
	tools []Tool
	heard time.Time
}

// Watch reads what is announced. When it returns, all that is announced by now is known. Stop must
// be called.
func Watch(ctx context.Context, l *stream.Log) (*Board, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	described, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	b := &Board{now: time.Now, schemas: described}
	b.life, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	b.watch, err = watch.Begin(ctx, watch.Source{Log: l, Bucket: kv, Keys: ">"}, watch.Copy{Load: b.load, Take: b.apply})
	if err != nil {
		b.stop()
		return nil, fmt.Errorf("announce: watch: %w", err)
	}
	return b, nil
}

// Stop ends the watch.
func (b *Board) Stop() {
	b.stop()
	b.watch.Stop()
}

// loading is what is announced before all of it is there.
type loading struct {
	board   *Board
	workers map[string]notice
}

func (b *Board) load() watch.Loading { return &loading{b, map[string]notice{}} }

func (l *loading) Take(entry jetstream.KeyValueEntry) { update(l.workers, entry, l.board.now()) }

func (l *loading) Done(context.Context, uint64) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	l.board.workers = l.workers
}

func (b *Board) apply(_ context.Context, change jetstream.KeyValueEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	update(b.workers, change, b.now())
}

// update takes in what a worker says, or that it says nothing any more.
func update(workers map[string]notice, entry jetstream.KeyValueEntry, now time.Time) {
	delete(workers, entry.Key())
	var announced []Tool
	if entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &announced) == nil {
		workers[entry.Key()] = notice{announced, now}
	}
}

// Missing returns those of an agent's tools, in their order, that no worker announces. Patterns may
// match nothing, and tools of clients and of other servers are not the workers' to announce: they
// are never missing.
func (b *Board) Missing(tools []string) []string {
	var missing []string
	for _, tool := range tools {
		if !strings.ContainsAny(tool, "*:") && !b.announced(tool) {
			missing = append(missing, tool)
		}
	}
	return missing
}

// Known returns the names that workers announce: their tools and MCP servers.
func (b *Board) Known() agents.Names {
	var known agents.Names
	for _, t := range b.find(func(Tool) bool { return true }) {
		if known.Tools = append(known.Tools, t.Name); t.Server != "" {
			known.Servers = append(known.Servers, t.Server)
		}
	}
	return known
}

func (b *Board) announced(tool string) bool {
	return len(b.find(func(t Tool) bool { return t.Name == tool })) > 0
}
