package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// State is what all workers share. Circuits are not part of it: each worker has its own.
type State struct {
	Pauses []Pause // sorted by model
	Uses   []Use   // sorted by provider
}

// Pause is a model that its provider wants no calls of.
type Pause struct {
	Model string // provider/model
	Until time.Time
}

// Use is the number of calls of all workers at a provider with a limit. A worker with calls writes their number
// when one begins, ends or is the first to wait, and every three seconds. So Waiting may be three seconds old.
type Use struct {
	Provider string
	Calls    int // active calls
	Waiting  int // calls that wait for their turn
}

// Read returns the present state of all workers, for a process that calls no models. It creates the
// bucket if it is missing. The error is a stream.ErrUnavailable, or the cause of ctx.
func Read(ctx context.Context, l *stream.Log) (State, error) {
	kv, err := openBucket(ctx, l)
	if err != nil {
		return State{}, asUnavailable(ctx, err)
	}
	watcher, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return State{}, asUnavailable(ctx, err)
	}
	defer stop(watcher)
	entries := map[string][]byte{} // an entry that a worker changes meanwhile may arrive again
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return State{}, fmt.Errorf("admission: %w: the connection was closed", stream.ErrUnavailable)
			case entry == nil: // all entries have arrived
				return newState(entries, time.Now()), nil
			}
			entries[entry.Key()] = entry.Value()
		case <-ctx.Done():
			return State{}, context.Cause(ctx)
		}
	}
}

// stop ends a watcher. Its goroutine blocks until the entries that it has received are read.
func stop(watcher jetstream.KeyWatcher) {
	_ = watcher.Stop()
	go func() {
		for range watcher.Updates() { // drop the entries
		}
	}()
}

// newState returns the state of a bucket with the given entries, without pauses that have ended and
// providers that have no calls. Invalid values count as none.
func newState(entries map[string][]byte, now time.Time) State {
	var s State
	for key, value := range entries {
		switch kind, name, _ := strings.Cut(key, "."); kind {
		case keyPause:
			var p pause
			_ = json.Unmarshal(value, &p)
			if until := time.UnixMilli(p.Until); until.After(now) {
				s.Pauses = append(s.Pauses, Pause{p.Model, until})
			}
		case keyLimit:
			var o occupancy
			_ = json.Unmarshal(value, &o)
			if o.expire(now); len(o.Workers) > 0 {
				s.Uses = append(s.Uses, Use{Provider: name, Calls: o.calls(), Waiting: o.waiting()})
			}
		}
	}
	slices.SortFunc(s.Pauses, func(a, b Pause) int { return strings.Compare(a.Model, b.Model) })
	slices.SortFunc(s.Uses, func(a, b Use) int { return strings.Compare(a.Provider, b.Provider) })
	return s
}
