// Package presence notices within seconds that a worker process died, and has what it was doing
// started again. Heartbeats would notice too, after half a minute: each is a persisted write, so
// they are rare.
//
//	worker A ──beat every 500 ms──►  bucket  ──watch──► worker B: A has missed four of my own beats
//	         ──what it is doing───►         ◄──────────  fails A's attempts by their task tokens
//
// Rules:
//   - No clock is compared: a worker is dead when the watcher saw four beats of its own, and none of
//     the other. An outage of the log that silences everybody makes nobody dead.
//   - A task token names one attempt. Failing one that has ended, or twice, changes nothing, so any
//     number of watchers may act, and a false alarm costs an attempt that the lane's fence cuts off.
//   - What a worker does stands in the bucket before it is done. What it was handed a moment before it died, or had
//     just done and not reported, does not: Temporal is asked for that.
package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// beatInterval is how often a worker says that it lives; after missedBeats it is taken for dead.
const (
	beatInterval = 500 * time.Millisecond
	missedBeats  = 4
)

// putPatience is how long to wait until what a worker does is stored, before it is stored again.
const putPatience = 2 * time.Second

// stopPatience bounds how long Temporal and the log are waited for when a worker stops.
const stopPatience = 3 * time.Second

// Keys of the bucket: a worker's beats, and the attempts that it is working on.
const (
	beatPrefix = "beat."
	workPrefix = "work."
)

// Fail tells Temporal that the attempt with a task token has failed because its worker died.
type Fail func(ctx context.Context, worker string, token []byte) error

// Sweep fails whatever else Temporal has handed to a dead worker, and tells how many attempts that
// were.
type Sweep func(ctx context.Context, worker string) (int, error)

// sweepPatience bounds a sweep.
const sweepPatience = 10 * time.Second

// Presence is one worker's part in this. Its methods may be called concurrently.
type Presence struct {
	kv     jetstream.KeyValue
	worker string
	key    string
	fail   Fail
	sweep  Sweep
	logger *slog.Logger
	stop   context.CancelFunc
	wait   sync.WaitGroup
	beats  *watch.Watch

	// What the watch alone uses: how many beats of its own since another worker's last, and who
	// that is, by key.
	missed map[string]int
	names  map[string]string

	mu      sync.Mutex
	work    map[string][]byte // tokens by themselves
	leaving bool
	version int
	stored  int
	changed chan struct{} // something to store
	done    chan struct{} // closed and replaced when a version is stored
}

// Start announces a worker and begins to watch the others. Stop must be called.
func Start(ctx context.Context, l *stream.Log, worker string, fail Fail, sweep Sweep, logger *slog.Logger) (*Presence, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "workers", Description: "Perdure: which workers live and what they do", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	p := &Presence{
		kv: kv, worker: worker, key: keyOf(worker), fail: fail, sweep: sweep, logger: logger,
		work: map[string][]byte{}, changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if _, err := kv.PutString(ctx, beatPrefix+p.key, worker); err != nil {
		return nil, fmt.Errorf("presence: %w", err)
	}
	if err := p.watch(ctx, l); err != nil {
		return nil, err
	}
	var live context.Context
	live, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.wait.Go(func() { p.sendBeat(live) })
	p.wait.Go(func() { p.store(live) })
	return p, nil
}

// keyOf returns a worker's name as a key may have it, which is less than a subject may.
func keyOf(worker string) string { return strings.TrimPrefix(stream.Token(worker), "~") }

// Leave is called before the worker stops. An attempt that ends from now on stays noted: it may end
// without Temporal hearing of it, since the connection goes with the worker.
func (p *Presence) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
}

// Stop withdraws the worker and waits for what Start began. The worker takes no more work by then.
// It fails the attempts that are still noted, because nobody else will know of them; one that did
// end is not touched by that. What cannot be done because Temporal or the log is away is left to
// other workers, who will take this one for dead.
func (p *Presence) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	p.stop()
	p.wait.Wait()
	p.beats.Stop()
	p.mu.Lock()
	tokens := slices.Collect(maps.Values(p.work))
	p.mu.Unlock()
	for _, token := range tokens {
		if err := p.fail(ctx, p.worker, token); err != nil {
			return fmt.Errorf("presence: %w", err) // what it did still stands in the bucket, for others to find
		}
	}
	return errors.Join(p.kv.Purge(ctx, workPrefix+p.key), p.kv.Purge(ctx, beatPrefix+p.key))
}

// Begin notes that the worker starts an attempt, and returns when the note is stored; end takes it
// back.
func (p *Presence) Begin(ctx context.Context, token []byte) (end func(), err error) {
	p.mu.Lock()
	p.work[string(token)] = token
	p.version++
	want := p.version
	p.mu.Unlock()
	end = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.leaving {
			return
		}
		delete(p.work, string(token))
		p.version++
		p.poke()
	}
	for {
		p.mu.Lock()
		stored, done := p.stored >= want, p.done
		p.poke()
		p.mu.Unlock()
		if stored {
			return end, nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			end()
			return nil, context.Cause(ctx)
		}
	}
}

func (p *Presence) poke() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// store writes what the worker does, one write at a time: what changes meanwhile goes together.
func (p *Presence) store(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
		p.mu.Lock()
		version := p.version
		tokens := make([][]byte, 0, len(p.work))
		for _, token := range p.work {
			tokens = append(tokens, token)
		}
		p.mu.Unlock()
		if err := p.put(ctx, tokens); err != nil {
			p.pause(ctx)
			p.poke()
			continue
		}
		p.mu.Lock()
		p.stored = version
		close(p.done)
		p.done = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *Presence) put(ctx context.Context, tokens [][]byte) error {
	body, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, putPatience)
	defer cancel()
	_, err = p.kv.Put(ctx, workPrefix+p.key, body)
	return err
}

func (p *Presence) pause(ctx context.Context) {
	t := time.NewTimer(beatInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// sendBeat says that the worker lives. A beat that fails is one that others miss.
func (p *Presence) sendBeat(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.beatOnce(ctx)
		}
	}
}

// beatOnce waits no longer for an answer than until the next beat is due: a beat whose answer is
// lost with a server must not keep the worker silent while others are heard again.
func (p *Presence) beatOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	_, _ = p.kv.PutString(ctx, beatPrefix+p.key, p.worker)
}

// watch counts its own beats since each other worker's last.
func (p *Presence) watch(ctx context.Context, l *stream.Log) (err error) {
	source := watch.Source{Log: l, Bucket: p.kv, Keys: beatPrefix + ">", Check: missedBeats * beatInterval}
	p.beats, err = watch.Begin(ctx, source, watch.Copy{Load: func() watch.Loading { return &roll{presence: p, names: map[string]string{}} }, Take: p.receiveBeat})
	if err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	return nil
}

// roll has who is there, by key.
type roll struct {
	presence *Presence
	names    map[string]string
}

func (r *roll) Take(entry jetstream.KeyValueEntry) {
	if entry.Operation() == jetstream.KeyValuePut && entry.Key() != beatPrefix+r.presence.key {
		r.names[entry.Key()] = string(entry.Value())
	}
}

func (r *roll) Done(context.Context, uint64) {
	r.presence.names, r.presence.missed = r.names, map[string]int{}
	for key := range r.names {
		r.presence.missed[key] = 0
	}
}

// receiveBeat takes in a beat, or that a worker has left.
func (p *Presence) receiveBeat(ctx context.Context, beat jetstream.KeyValueEntry) {
	switch {
	case beat.Operation() != jetstream.KeyValuePut:
		delete(p.missed, beat.Key())
	case beat.Key() == beatPrefix+p.key:
		for key := range p.missed {
			if p.missed[key]++; p.missed[key] >= missedBeats && p.bury(ctx, key, p.names[key]) {
				delete(p.missed, key)
			}
		}
	default:
		p.missed[beat.Key()] = 0
		p.names[beat.Key()] = string(beat.Value())
	}
}

// bury fails what a dead worker was doing and removes its traces. It reports false if that has to
// be tried again.
func (p *Presence) bury(ctx context.Context, beatKey, worker string) bool {
	key := workPrefix + strings.TrimPrefix(beatKey, beatPrefix)
	entry, err := p.kv.Get(ctx, key)
	var tokens [][]byte
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = nil // it had begun nothing, or another worker was quicker
	case err == nil:
		err = json.Unmarshal(entry.Value(), &tokens)
	}
	for _, token := range tokens {
		err = errors.Join(err, p.fail(ctx, worker, token))
	}
	if err == nil {
		err = errors.Join(p.kv.Purge(ctx, key), p.kv.Purge(ctx, beatKey))
	}
	if err != nil {
		p.logger.WarnContext(ctx, "could not take over from a dead worker", "worker", worker, "error", err)
		return false
	}
	sweeping, cancel := context.WithTimeout(ctx, sweepPatience)
	defer cancel()
	unnoted, err := p.sweep(sweeping, worker)
	if err != nil { // heartbeats find what is left
		p.logger.WarnContext(ctx, "could not ask for all that a dead worker was handed", "worker", worker, "error", err)
	}
	p.logger.InfoContext(ctx, "took over from a dead worker", "worker", worker, "attempts", len(tokens), "unnoted", unnoted)
	return true
}
