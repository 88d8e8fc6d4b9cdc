package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

const (
	// maxBatch bounds the runs of one write. It is less than maxCounted, so that an entry knows all
	// runs of the last write.
	maxBatch = 64
	// maxTries bounds the compare-and-swaps of one write. Each conflict means that another process has
	// counted a run.
	maxTries = 1_000
)

// writer changes the entries of some keys for the runs of this process. One run at a time has the
// turn, and counts those that wait with it: many runs that end at once need few writes.
type writer struct {
	kv   jetstream.KeyValue
	turn chan struct{} // has an element while a run has the turn

	mu      sync.Mutex
	waiting map[string][]*pending // by key

	// last is the entry that was written last. The next write of its key need not read it: if another
	// process has changed it, the compare-and-swap fails. Only the run that has the turn uses it.
	last saved
}

// pending is a run that is to be counted. Only the run that has the turn uses counted.
type pending struct {
	run     Run
	id      string
	counted bool
}

// saved is an entry as it is in the bucket; revision 0 = it is not there.
type saved struct {
	key string
	entry
	revision uint64
}

// count counts a run, and maybe others that wait.
func (w *writer) count(ctx context.Context, key string, r Run) error {
	one := &pending{run: r, id: r.Identify("u", r.Part)}
	w.add(key, one)
	defer w.remove(key, one)
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return asUnavailable(context.Cause(ctx))
	}
	if one.counted {
		return nil
	}
	batch := w.batch(key, one)
	if err := w.write(ctx, key, batch); err != nil {
		return err // the others try for themselves
	}
	for _, p := range batch {
		p.counted = true
	}
	return nil
}

// write adds runs to the entry of a key.
func (w *writer) write(ctx context.Context, key string, batch []*pending) error {
	last := w.last
	w.last = saved{} // until it is known what the bucket has
	for range maxTries {
		if last.key != key {
			var err error
			if last, err = w.read(ctx, key); err != nil {
				return err
			}
		}
		added := false
		for _, p := range batch {
			if !slices.Contains(last.Counted, p.id) {
				last.add(p.run, p.id)
				added = true
			}
		}
		if !added {
			w.last = last
			return nil
		}
		body, err := json.Marshal(last.entry)
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		if last.revision == 0 {
			last.revision, err = w.kv.Create(ctx, key, body)
		} else {
			last.revision, err = w.kv.Update(ctx, key, body, last.revision)
		}
		if err == nil {
			w.last = last
			return nil
		}
		if !stream.IsConflict(err) {
			return asUnavailable(err)
		}
		last = saved{} // another process has changed the entry
	}
	return asUnavailable(errors.New("too many runs are counted at once"))
}

// read returns the entry of a key.
func (w *writer) read(ctx context.Context, key string) (saved, error) {
	kept, err := w.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return saved{key: key}, nil
	}
	if err != nil {
		return saved{}, asUnavailable(err)
	}
	e, err := decode(kept)
	return saved{key, e, kept.Revision()}, err
}

// add lets a run wait to be counted.
func (w *writer) add(key string, one *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[key] = append(w.waiting[key], one)
}

// remove is the opposite of add.
func (w *writer) remove(key string, one *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.waiting[key], func(p *pending) bool { return p == one })
	if len(rest) == 0 {
		delete(w.waiting, key)
		return
	}
	w.waiting[key] = rest
}

// batch returns one, which must wait, and the others of its key that wait longest.
func (w *writer) batch(key string, one *pending) []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := []*pending{one}
	for _, p := range w.waiting[key] {
		if p != one && !p.counted && len(batch) < maxBatch {
			batch = append(batch, p)
		}
	}
	return batch
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable. It returns nil for nil.
func asUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("usage: %w: %w", stream.ErrUnavailable, err)
}
