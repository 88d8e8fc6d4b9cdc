package watch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Source selects the keys of a bucket to watch.
type Source struct {
	Log    *stream.Log
	Bucket jetstream.KeyValue
	// Keys is a key, possibly with the wildcards of NATS subjects.
	Keys string
	// Check is the interval at which the watch compares its revision with the bucket's; 0 = 15 s.
	// If the watch is behind at two consecutive checks, it begins again.
	Check time.Duration
}

// Receiver is the receiver of a watch. A watch calls its functions, and those of its Loading, from
// one goroutine, one after the other.
type Receiver struct {
	// Load begins to load the present values. The copy keeps its earlier state until Loading.Done.
	Load func() Loading
	// Take applies one change. Puts, deletes and purges are changes. ctx ends when the watch stops.
	Take func(ctx context.Context, change jetstream.KeyValueEntry)
}

// Loading receives the present values of all keys: each key once, and again if it changes
// meanwhile.
type Loading interface {
	// Take receives an entry; a deleted key may be among them.
	Take(entry jetstream.KeyValueEntry)
	// Done replaces the copy by what was loaded. revision is the highest revision that was
	// received; 0 = there were no entries.
	Done(ctx context.Context, revision uint64)
}

// Watch keeps one copy current. Begin starts its only lasting goroutine, and Stop ends it. It is
// safe for concurrent use.
type Watch struct {
	source   Source
	receiver Receiver
	stop     context.CancelFunc
	wait     sync.WaitGroup
	// current is whether the copy is loaded and no failure of its watch is known.
	current atomic.Bool

	mu      sync.Mutex
	changed chan struct{} // closed by the next change; nil = no caller waits for one. Guarded by mu
}

const (
	// defaultCheckInterval is the default of Source.Check.
	defaultCheckInterval = 15 * time.Second
	// restartPause is the pause after a watch has failed, before the next one.
	restartPause = time.Second
)

// Begin loads a copy, and keeps it current until Stop, which the caller must call. It blocks until
// the copy is loaded, and fails with the cause of ctx if ctx ends before that. Later, ctx has no
// effect.
func Begin(ctx context.Context, s Source, c Receiver) (*Watch, error) {
	if s.Check == 0 {
		s.Check = defaultCheckInterval
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &Watch{source: s, receiver: c, stop: stop}
	loaded := make(chan struct{})
	w.wait.Go(func() { w.follow(live, sync.OnceFunc(func() { close(loaded) })) })
	select {
	case <-loaded:
		return w, nil
	case <-ctx.Done():
		w.Stop()
		return nil, context.Cause(ctx)
	}
}

// Stop ends the watch and waits for its goroutine: after Stop returns, no function of the Receiver
// is called.
func (w *Watch) Stop() {
	w.stop()
	w.wait.Wait()
}

// Current reports whether the watch receives changes. If not, the copy has an earlier state. A
// watch that has failed silently counts as current until two checks have found it behind.
func (w *Watch) Current() bool { return w.current.Load() }

// Changed returns a channel that is closed when the copy has taken another change, or was loaded
// again.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// notifyChanged closes the channel of Changed.
func (w *Watch) notifyChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// follow runs one watch of nats.go after the other until ctx ends. It calls loaded after the first
// load.
func (w *Watch) follow(ctx context.Context, loaded func()) {
	for ctx.Err() == nil {
		if updates, err := w.source.watch(ctx); err == nil {
			w.receive(ctx, updates.Updates(), loaded)
			unwatch(updates)
		}
		w.current.Store(false)
		pause := time.NewTimer(restartPause)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// watch begins a watch of nats.go. That call may block for 5 s if the server is unavailable, even
// if ctx has ended; watch returns when ctx ends, and a goroutine stops the late watch.
func (s *Source) watch(ctx context.Context) (jetstream.KeyWatcher, error) {
	type begun struct {
		updates jetstream.KeyWatcher
		err     error
	}
	done := make(chan begun, 1)
	go func() {
		updates, err := s.Bucket.Watch(ctx, s.Keys)
		done <- begun{updates, err}
	}()
	select {
	case b := <-done:
		return b.updates, b.err
	case <-ctx.Done():
		go func() {
			if b := <-done; b.err == nil {
				_ = b.updates.Stop()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// unwatchTimeout bounds the wait for the server at the end of a watch.
const unwatchTimeout = 500 * time.Millisecond

// unwatch ends a watch of nats.go, and waits up to unwatchTimeout for it. Its Stop deletes the
// consumer on the server and waits 5 s for the answer (nats.go, Subscription.Unsubscribe), even if
// the server is unavailable. The server deletes an unused consumer by itself.
func unwatch(updates jetstream.KeyWatcher) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = updates.Stop()
	}()
	timer := time.NewTimer(unwatchTimeout)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
	}
}

// receive passes the updates of one watch to the copy. It returns when ctx ends, when the watch
// ends, or when the watch was behind at two consecutive checks: one check may just precede an
// update in flight.
func (w *Watch) receive(ctx context.Context, updates <-chan jetstream.KeyValueEntry, loaded func()) {
	loading, revision, wasBehind := w.receiver.Load(), uint64(0), false
	checks := time.NewTicker(w.source.Check)
	defer checks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-checks.C:
			before := wasBehind
			if wasBehind = w.isBehind(ctx, revision); wasBehind && before {
				return
			}
		case entry, ok := <-updates:
			switch {
			case !ok:
				return
			case entry == nil: // nats.go: all present values were delivered
				loading.Done(ctx, revision)
				loading = nil
				w.current.Store(true)
				w.notifyChanged()
				loaded()
				continue
			case loading != nil:
				loading.Take(entry)
			default:
				w.receiver.Take(ctx, entry)
				w.notifyChanged()
			}
			revision = max(revision, entry.Revision())
		}
	}
}

// isBehind reports whether the bucket has a change after revision. The replica that answers may
// lag, or fail to answer: then isBehind reports false.
func (w *Watch) isBehind(ctx context.Context, revision uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, w.source.Check)
	defer cancel()
	last, err := w.source.Log.LastRevision(ctx, w.source.Bucket, w.source.Keys)
	return err == nil && last > revision
}
