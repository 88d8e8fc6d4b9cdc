// Package presence notices within seconds that a worker process has died, and makes Temporal retry
// its activities at once. Heartbeat timeouts would do so after half a minute: Temporal persists
// each heartbeat, so they are rare.
//
//	worker A ──beat every 500 ms──► bucket ──watch──► worker B: A has missed four beats of mine
//	         ──attempts in progress──►      ◄──────── fails A's attempts by their task tokens
//
// Rules:
//   - No clocks are compared. A worker counts as dead when the watcher has seen four beats of its
//     own and none of the other worker. An outage of the log, which silences all workers, makes
//     none of them dead.
//   - A task token identifies one attempt. To fail an attempt that has ended, or to fail it twice,
//     changes nothing. So any number of workers may act concurrently. A false alarm costs one
//     attempt, which the fence of its lane cuts off.
//   - A worker records an attempt in the bucket before it executes the attempt. Two kinds of
//     attempts are not recorded: those that Temporal gave to the worker just before its death, and
//     those that had ended without a report to Temporal. A sweep over Temporal's open workflows
//     finds them.
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

// beatInterval is the interval of a worker's beats. A worker that misses maxMissedBeats counts as
// dead.
const (
	beatInterval   = 500 * time.Millisecond
	maxMissedBeats = 4
)

// putTimeout bounds one write of the worker's attempts, before it is repeated.
const putTimeout = 2 * time.Second

// stopTimeout bounds how long Stop waits for Temporal and the log.
const stopTimeout = 3 * time.Second

// Prefixes of keys: the beats of a worker, and its attempts in progress.
const (
	beatPrefix = "beat."
	workPrefix = "work."
)

// Fail reports to Temporal that an attempt has failed because its worker died. token is the
// attempt's task token.
type Fail func(ctx context.Context, worker string, token []byte) error

// Sweep fails the attempts of a dead worker that the bucket does not have, and returns their
// number.
type Sweep func(ctx context.Context, worker string) (int, error)

// sweepTimeout bounds one sweep.
const sweepTimeout = 10 * time.Second

// Presence is the participation of one worker: it sends beats, records the attempts of this worker,
// and takes over those of dead ones. Start makes it and starts three goroutines: sendBeats,
// storeAttempts and that of the watch. Stop ends them. Its methods are safe for concurrent use.
type Presence struct {
	kv jetstream.KeyValue
	// worker is the worker's name, which is also its identity in Temporal; key is the name as a
	// token of a key.
	worker string
	key    string
	fail   Fail
	sweep  Sweep
	logger *slog.Logger
	stop   context.CancelFunc
	wait   sync.WaitGroup
	beats  *watch.Watch

	// others are the other live workers, by key of their beats. Only the watch's goroutine uses it.
	others map[string]*otherWorker

	mu sync.Mutex
	// attempts has the task tokens of the attempts in progress, each under itself.
	attempts  map[string][]byte
	isLeaving bool // set by Leave
	// attemptsVersion counts the changes of attempts; storedVersion is the version that the bucket
	// has.
	attemptsVersion int
	storedVersion   int
	wakeups         chan struct{} // capacity 1: attempts has changed
	storedChanged   chan struct{} // closed and replaced when storedVersion changes
}

// otherWorker is a live worker other than this one.
type otherWorker struct {
	name string
	// missedBeats counts the beats of this worker since the last beat of the other one.
	missedBeats int
}

// Start sends the first beat of a worker, and begins to watch the others. It blocks until all
// present beats are read. The caller must call Stop. Presence owns neither the log nor the
// connection to Temporal.
func Start(ctx context.Context, l *stream.Log, worker string, fail Fail, sweep Sweep, logger *slog.Logger) (*Presence, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "workers", Description: "Perdure: live workers and their attempts", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	p := &Presence{
		kv: kv, worker: worker, key: keyOf(worker), fail: fail, sweep: sweep, logger: logger,
		attempts: map[string][]byte{}, wakeups: make(chan struct{}, 1), storedChanged: make(chan struct{}),
	}
	if _, err := kv.PutString(ctx, beatPrefix+p.key, worker); err != nil {
		return nil, fmt.Errorf("presence: %w", err)
	}
	if err := p.watchBeats(ctx, l); err != nil {
		return nil, err
	}
	var live context.Context
	live, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.wait.Go(func() { p.sendBeats(live) })
	p.wait.Go(func() { p.storeAttempts(live) })
	return p, nil
}

// keyOf returns a worker's name as a token of a key. Keys of a bucket must not contain "~", which
// begins the tokens of long names (stream.Token).
func keyOf(worker string) string { return strings.TrimPrefix(stream.Token(worker), "~") }

// Leave is called before the worker stops. An attempt that ends after this call stays recorded: its
// report may not reach Temporal, because the worker closes its connection. Stop fails these
// attempts.
func (p *Presence) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isLeaving = true
}

// Stop ends the goroutines, waits for them, and removes the worker from the bucket. The worker must
// not receive activities any more. Stop fails the attempts that are still recorded, because no
// report of them may have reached Temporal; it has no effect on those that have ended. If Temporal
// or the log cannot be reached within stopTimeout, Stop fails, and other workers take this one for
// dead.
func (p *Presence) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	p.stop()
	p.wait.Wait()
	p.beats.Stop()
	p.mu.Lock()
	tokens := slices.Collect(maps.Values(p.attempts))
	p.mu.Unlock()
	for _, token := range tokens {
		if err := p.fail(ctx, p.worker, token); err != nil {
			return fmt.Errorf("presence: %w", err) // the bucket keeps the attempts, for another worker to find
		}
	}
	return errors.Join(p.kv.Purge(ctx, workPrefix+p.key), p.kv.Purge(ctx, beatPrefix+p.key))
}

// Begin records an attempt, and returns when the bucket has the record: the worker executes the
// attempt only after that. The caller calls end when the attempt has ended. If ctx ends before the
// record is written, Begin removes it and fails with ctx's cause.
func (p *Presence) Begin(ctx context.Context, token []byte) (end func(), err error) {
	p.mu.Lock()
	p.attempts[string(token)] = token
	p.attemptsVersion++
	version := p.attemptsVersion
	p.mu.Unlock()
	end = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.isLeaving {
			return
		}
		delete(p.attempts, string(token))
		p.attemptsVersion++
		p.wakeStore()
	}
	for {
		p.mu.Lock()
		stored, done := p.storedVersion >= version, p.storedChanged
		p.wakeStore()
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

// wakeStore wakes the goroutine of storeAttempts. It does not block.
func (p *Presence) wakeStore() {
	select {
	case p.wakeups <- struct{}{}:
	default:
	}
}

// storeAttempts writes the attempts of the worker, one write at a time, until ctx ends. Changes
// during a write are written together by the next one. A write that fails is repeated after a
// beatInterval.
func (p *Presence) storeAttempts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wakeups:
		}
		p.mu.Lock()
		version := p.attemptsVersion
		tokens := make([][]byte, 0, len(p.attempts))
		for _, token := range p.attempts {
			tokens = append(tokens, token)
		}
		p.mu.Unlock()
		if err := p.putAttempts(ctx, tokens); err != nil {
			p.pause(ctx)
			p.wakeStore()
			continue
		}
		p.mu.Lock()
		p.storedVersion = version
		close(p.storedChanged)
		p.storedChanged = make(chan struct{})
		p.mu.Unlock()
	}
}

// putAttempts writes the task tokens of the worker's attempts.
func (p *Presence) putAttempts(ctx context.Context, tokens [][]byte) error {
	body, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	_, err = p.kv.Put(ctx, workPrefix+p.key, body)
	return err
}

// pause waits for a beatInterval, or until ctx ends.
func (p *Presence) pause(ctx context.Context) {
	t := time.NewTimer(beatInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// sendBeats sends a beat every beatInterval until ctx ends. It ignores failures: other workers
// count the missing beats.
func (p *Presence) sendBeats(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.sendBeat(ctx)
		}
	}
}

// sendBeat sends one beat, and waits for its acknowledgement until the next beat is due. A longer
// wait for an acknowledgement that was lost with a server would keep this worker silent while other
// workers are heard again.
func (p *Presence) sendBeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	_, _ = p.kv.PutString(ctx, beatPrefix+p.key, p.worker)
}

// watchBeats begins the watch of all beats, including those of this worker.
func (p *Presence) watchBeats(ctx context.Context, l *stream.Log) (err error) {
	source := watch.Source{Log: l, Bucket: p.kv, Keys: beatPrefix + ">", Check: maxMissedBeats * beatInterval}
	p.beats, err = watch.Begin(ctx, source, watch.Receiver{Load: func() watch.Loading { return &workerLoad{presence: p, others: map[string]*otherWorker{}} }, Take: p.receiveBeat})
	if err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	return nil
}

// workerLoad collects the other workers during a load, by key of their beats.
type workerLoad struct {
	presence *Presence
	others   map[string]*otherWorker
}

// Take implements [watch.Loading].
func (l *workerLoad) Take(entry jetstream.KeyValueEntry) {
	if entry.Operation() == jetstream.KeyValuePut && entry.Key() != beatPrefix+l.presence.key {
		l.others[entry.Key()] = &otherWorker{name: string(entry.Value())}
	}
}

// Done implements [watch.Loading]. It counts the missed beats of all workers from 0, so that a
// watch that begins again makes no worker dead.
func (l *workerLoad) Done(context.Context, uint64) {
	l.presence.others = l.others
}

// receiveBeat handles a beat, or the deletion of a worker's key. A beat of this worker is the
// clock: it counts one missed beat for each other worker, and takes over from those that have
// missed too many. It runs on the watch's goroutine, so take-overs delay later beats.
func (p *Presence) receiveBeat(ctx context.Context, beat jetstream.KeyValueEntry) {
	switch {
	case beat.Operation() != jetstream.KeyValuePut:
		delete(p.others, beat.Key())
	case beat.Key() == beatPrefix+p.key:
		for key, other := range p.others {
			if other.missedBeats++; other.missedBeats >= maxMissedBeats && p.takeOver(ctx, key, other.name) {
				delete(p.others, key)
			}
		}
	default:
		p.others[beat.Key()] = &otherWorker{name: string(beat.Value())}
	}
}

// takeOver fails the recorded attempts of a dead worker, removes its keys, and sweeps Temporal for
// the rest. It returns false if the recorded attempts could not be failed: then receiveBeat tries
// again with the next beat. A sweep that fails is only logged.
func (p *Presence) takeOver(ctx context.Context, beatKey, worker string) bool {
	key := workPrefix + strings.TrimPrefix(beatKey, beatPrefix)
	entry, err := p.kv.Get(ctx, key)
	var tokens [][]byte
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = nil // it had no attempts, or another worker was faster
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
	sweeping, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	swept, err := p.sweep(sweeping, worker)
	if err != nil { // heartbeat timeouts find the rest
		p.logger.WarnContext(ctx, "the sweep for the attempts of a dead worker failed", "worker", worker, "error", err)
	}
	p.logger.InfoContext(ctx, "took over from a dead worker", "worker", worker, "attempts", len(tokens), "swept", swept)
	return true
}
