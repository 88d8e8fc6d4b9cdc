package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Board has what all workers announce. It is safe for concurrent use.
type Board struct {
	life    context.Context // ends with Stop
	stop    context.CancelFunc
	wait    sync.WaitGroup
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

// Watch reads what is announced. When it returns, all that is announced by now is known. Stop must be
// called.
func Watch(ctx context.Context, l *stream.Log) (*Board, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	described, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := kv.WatchAll(live)
	if err != nil {
		stop()
		return nil, fmt.Errorf("announce: watch: %w", err)
	}
	b := &Board{life: live, stop: stop, now: time.Now, schemas: described, workers: map[string]notice{}}
	known := make(chan struct{})
	b.wait.Go(func() { b.follow(live, w, known) })
	select {
	case <-known:
		return b, nil
	case <-ctx.Done():
		b.Stop()
		return nil, fmt.Errorf("announce: watch: %w", context.Cause(ctx))
	}
}

// Stop ends the watch.
func (b *Board) Stop() {
	b.stop()
	b.wait.Wait()
}

func (b *Board) follow(ctx context.Context, w jetstream.KeyWatcher, known chan<- struct{}) {
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return
			case entry == nil:
				close(known)
			default:
				b.take(entry)
			}
		}
	}
}

func (b *Board) take(entry jetstream.KeyValueEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.workers, entry.Key())
	var announced []Tool
	if entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &announced) == nil {
		b.workers[entry.Key()] = notice{announced, b.now()}
	}
}

// Missing returns those of an agent's tools, in their order, that no worker announces. Patterns may match
// nothing, and tools of clients and of other servers are not the workers' to announce: they are never missing.
func (b *Board) Missing(tools []string) []string {
	var missing []string
	for _, tool := range tools {
		if !strings.ContainsAny(tool, "*:") && !b.announced(tool) {
			missing = append(missing, tool)
		}
	}
	return missing
}

func (b *Board) announced(tool string) bool {
	return len(b.find(func(t Tool) bool { return t.Name == tool })) > 0
}
