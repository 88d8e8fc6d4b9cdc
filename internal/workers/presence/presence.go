// Package presence notices within a second that a worker process has died, and makes Temporal give
// its tasks to other workers at once: its activities, and the workflow tasks within which a model is
// called. Timeouts would do so after half a minute and after some seconds.
//
//	worker A ──beat every 500 ms──► bucket ──watch──► worker B: A has missed four beats of mine,
//	         ──tasks in progress──►         ◄──────── or NATS has refused six probes of it (probe.go):
//	                                                  B fails A's tasks by their tokens
//
// Rules:
//   - No clocks are compared. A worker that hangs counts as dead when the watcher has seen four beats
//     of its own and none of the other worker. An outage of the log, which silences all workers,
//     makes none of them dead.
//   - A worker whose connection to NATS has ended counts as dead after six refused probes (0.6 s).
//   - A token identifies one attempt of an activity, or one workflow task. To fail a task that has
//     ended, or to fail it twice, changes nothing. So any number of workers may act concurrently. A
//     false alarm costs one attempt, which the fence of its lane cuts off, and polls of the worker,
//     which Temporal refuses for half a minute.
//   - A worker records an attempt in the bucket before it executes the attempt, and a workflow task
//     before it calls a model within it. Two kinds of attempts are not recorded: those that Temporal
//     gave to the worker just before its death or its stop, and those that had ended without a report
//     to Temporal. A sweep over Temporal's open workflows finds them. Workflow tasks that are not
//     recorded end by their timeout.
package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// putTimeout bounds one write of the worker's tasks, before it is repeated.
const putTimeout = 2 * time.Second

// stopTimeout bounds how long Stop waits for Temporal and the log.
const stopTimeout = 3 * time.Second

// Prefixes of keys: the beats of a worker, and its tasks in progress.
const (
	beatPrefix = "beat."
	workPrefix = "work."
)

// Temporal is what a worker does in Temporal when another one has died, or when itself stops. Its
// functions are required, except for Shutdown in a worker that never takes over.
type Temporal struct {
	Shutdown Shutdown
	Fail     Fail
	Sweep    Sweep
}

// Shutdown ends the polls of a dead worker, of which a hung process still has some: tasks would be
// given to it. The worker's workflows leave its sticky queue.
type Shutdown func(ctx context.Context, worker string, dead Poller) error

// Fail reports to Temporal that a task has failed because its worker died. A task that has ended is
// no error.
type Fail func(ctx context.Context, worker string, failed Task) error

// Sweep fails the attempts of a dead worker that the bucket does not have, and returns their
// number.
type Sweep func(ctx context.Context, worker string) (int, error)

// sweepTimeout bounds one sweep.
const sweepTimeout = 10 * time.Second

// Presence is the participation of one worker: it sends beats, records the tasks of this worker, and
// takes over those of dead ones. Start makes it and starts four goroutines: sendBeats, storeTasks,
// that of the prober and that of the watch. Stop ends them. Its methods are safe for concurrent use.
type Presence struct {
	kv jetstream.KeyValue
	// worker is the worker's name, which is also its identity in Temporal; key is the name as a
	// token of a key.
	worker   string
	key      string
	tasks    *Tasks
	temporal Temporal
	logger   *slog.Logger
	stop     context.CancelFunc
	wait     sync.WaitGroup
	beats    *watch.Watch
	prober   *prober
	others   *roster
}

// Start sends the first beat of a worker, and begins to watch the others. It blocks until all
// present beats are read. The caller must call Stop. Presence owns neither the log nor the
// connection to Temporal.
func Start(ctx context.Context, l *stream.Log, worker string, tasks *Tasks, temporal Temporal, logger *slog.Logger) (*Presence, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "workers", Description: "Perdure: live workers and their attempts", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, err
	}
	p := &Presence{kv: kv, worker: worker, key: keyOf(worker), tasks: tasks, temporal: temporal, logger: logger, others: &roster{}}
	p.prober = &prober{conn: l.Conn(), subject: l.WorkerSubject, worker: worker, others: p.others}
	if err := p.announce(ctx, l); err != nil {
		p.prober.stop()
		return nil, err
	}
	var live context.Context
	live, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.wait.Go(func() { p.sendBeats(live) })
	p.wait.Go(func() { p.storeTasks(live) })
	p.wait.Go(func() {
		p.prober.run(live, func(ctx context.Context, dead *otherWorker) { p.takeOver(ctx, dead, "refused probes") })
	})
	return p, nil
}

// announce sends the first beat, when NATS has the subscription for probes, and watches the others.
func (p *Presence) announce(ctx context.Context, l *stream.Log) error {
	if err := p.prober.listen(); err != nil {
		return err
	}
	if _, err := p.kv.PutString(ctx, beatPrefix+p.key, p.worker); err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	return p.watchBeats(ctx, l)
}

// keyOf returns a worker's name as a token of a key. Keys of a bucket must not contain "~", which
// begins the tokens of long names (stream.Token).
func keyOf(worker string) string { return strings.TrimPrefix(stream.Token(worker), "~") }

// Leave is called before the worker stops. An attempt that ends after this call stays recorded: its
// report may not reach Temporal, because the worker closes its connection. Stop fails these
// attempts.
func (p *Presence) Leave() { p.tasks.leave() }

// Stop ends the goroutines, waits for them, and removes the worker from the bucket. The worker must
// not receive tasks any more. Stop fails the tasks that are still recorded, because no report of
// them may have reached Temporal; it has no effect on those that have ended. Then it sweeps for
// attempts that Temporal gave to a poll that had already ended: the worker has never seen them. If
// Temporal or the log does not answer within stopTimeout, Stop fails, and other workers take this one
// for dead.
func (p *Presence) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	p.stop()
	p.wait.Wait()
	p.beats.Stop()
	defer p.prober.stop() // last: a worker that stops is not dead
	stored, _ := p.tasks.record()
	for _, left := range stored.Tasks {
		if err := p.temporal.Fail(ctx, p.worker, left); err != nil {
			return fmt.Errorf("presence: %w", err) // the bucket keeps the tasks, for another worker to find
		}
	}
	if _, err := p.temporal.Sweep(ctx, p.worker); err != nil {
		return fmt.Errorf("presence: %w", err) // another worker sweeps
	}
	return errors.Join(p.kv.Purge(ctx, workPrefix+p.key), p.kv.Purge(ctx, beatPrefix+p.key))
}

// Begin records an attempt, and returns when the bucket has the record: the worker executes the
// attempt only after that. The caller calls end when the attempt has ended. If ctx ends before the
// record is written, Begin removes it and fails with ctx's cause.
func (p *Presence) Begin(ctx context.Context, token []byte) (end func(), err error) {
	key := string(token)
	p.tasks.add(key, task{Task: Task{Token: token}})
	end = func() { p.tasks.endAttempt(key) }
	if _, err := p.tasks.awaitStored(ctx, key); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// AwaitWorkflowTask returns when the bucket has the workflow task of an execution that this process
// has received. The results are when it was received, and whether Temporal has dispatched it before,
// to any worker. It fails if there is no task, and with ctx's cause if ctx ends.
func (p *Presence) AwaitWorkflowTask(ctx context.Context, runID string) (received time.Time, isRepeated bool, err error) {
	awaited, err := p.tasks.awaitStored(ctx, runID)
	return awaited.received, awaited.attempt > 1, err
}

// storeTasks writes the tasks of the worker, one write at a time, until ctx ends. Changes during a
// write are written together by the next one. A write that fails is repeated after a beatInterval.
func (p *Presence) storeTasks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.tasks.wakeups:
		}
		stored, version := p.tasks.record()
		if err := p.putRecord(ctx, stored); err != nil {
			p.pause(ctx)
			p.tasks.wake()
			continue
		}
		p.tasks.setStored(version)
	}
}

// putRecord writes the record of the worker.
func (p *Presence) putRecord(ctx context.Context, stored record) error {
	body, err := json.Marshal(stored)
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

// workerLoad collects the other workers during a load, by key.
type workerLoad struct {
	presence *Presence
	others   map[string]*otherWorker
}

// Take implements [watch.Loading].
func (l *workerLoad) Take(entry jetstream.KeyValueEntry) {
	if key := strings.TrimPrefix(entry.Key(), beatPrefix); entry.Operation() == jetstream.KeyValuePut && key != l.presence.key {
		l.others[key] = &otherWorker{key: key, name: string(entry.Value())}
	}
}

// Done implements [watch.Loading]. It counts the missed beats of all workers from 0, so that a
// watch that begins again makes no worker dead.
func (l *workerLoad) Done(context.Context, uint64) { l.presence.others.replace(l.others) }

// receiveBeat handles a beat, or the deletion of a worker's key. A beat of this worker is the
// clock: it counts one missed beat for each other worker, and takes over from those that have
// missed too many. It runs on the watch's goroutine, so take-overs delay later beats.
func (p *Presence) receiveBeat(ctx context.Context, beat jetstream.KeyValueEntry) {
	switch key := strings.TrimPrefix(beat.Key(), beatPrefix); {
	case beat.Operation() != jetstream.KeyValuePut:
		p.others.remove(key)
	case key == p.key:
		for _, dead := range p.others.countMissedBeats() {
			p.takeOver(ctx, dead, "missed beats")
		}
	default:
		p.others.countBeat(key, string(beat.Value()))
	}
}

// takeOver fails the tasks of a dead worker, and sweeps Temporal for the rest. sign is the sign of its
// death, for the log. If the recorded tasks could not be failed, the next missed beat tries again. A
// sweep that fails is only logged.
func (p *Presence) takeOver(ctx context.Context, dead *otherWorker, sign string) {
	tasks, err := p.failTasks(ctx, dead)
	if err != nil {
		p.logger.WarnContext(ctx, "could not take over from a dead worker", "worker", dead.name, "sign", sign, "error", err)
		p.others.release(dead)
		return
	}
	p.others.remove(dead.key)
	sweeping, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	swept, err := p.temporal.Sweep(sweeping, dead.name)
	if err != nil { // heartbeat timeouts find the rest
		p.logger.WarnContext(ctx, "the sweep for the attempts of a dead worker failed", "worker", dead.name, "error", err)
	}
	p.logger.InfoContext(ctx, "took over from a dead worker", "worker", dead.name, "sign", sign, "tasks", tasks, "swept", swept)
}

// failTasks ends the polls of a dead worker, fails its recorded tasks, and removes its keys. It
// returns the number of tasks.
func (p *Presence) failTasks(ctx context.Context, dead *otherWorker) (tasks int, err error) {
	entry, err := p.kv.Get(ctx, workPrefix+dead.key)
	var stored record
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = nil // it had no tasks, or another worker was faster
	case err == nil:
		err = json.Unmarshal(entry.Value(), &stored)
	}
	for _, poller := range stored.Pollers {
		err = errors.Join(err, p.temporal.Shutdown(ctx, dead.name, poller))
	}
	for _, left := range stored.Tasks {
		err = errors.Join(err, p.temporal.Fail(ctx, dead.name, left))
	}
	if err != nil {
		return 0, err
	}
	return len(stored.Tasks), errors.Join(p.kv.Purge(ctx, workPrefix+dead.key), p.kv.Purge(ctx, beatPrefix+dead.key))
}
