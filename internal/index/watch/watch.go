package watch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Source is the part of a bucket.
type Source struct {
	Log    *stream.Log
	Bucket jetstream.KeyValue
	// Keys may have wildcards.
	Keys string
	// Check is how often it is looked whether a watch has told what happened last; 0 = 15 s. One
	// that has not at two looks is broken.
	Check time.Duration
}

// Copy is what is kept. Its functions, and those of a Loading, are called one after the other.
type Copy struct {
	// Load begins to load. What was known before stays until that is done.
	Load func() Loading
	// Take takes in a change. ctx ends with the watch.
	Take func(ctx context.Context, change jetstream.KeyValueEntry)
}

// Loading takes in what there is: each key once, or again if it changes meanwhile.
type Loading interface {
	Take(entry jetstream.KeyValueEntry)
	// Done replaces the copy. It is so up to a revision.
	Done(ctx context.Context, revision uint64)
}

// Watch keeps a copy. It is safe for concurrent use.
type Watch struct {
	source  Source
	copy    Copy
	stop    context.CancelFunc
	wait    sync.WaitGroup
	current atomic.Bool
}

const (
	check   = 15 * time.Second
	rewatch = time.Second // the pause before a watch that broke is begun anew
)

// Begin loads a copy, and keeps it up to date until Stop, which must be called. It fails when ctx
// ends before it is loaded.
func Begin(ctx context.Context, s Source, c Copy) (*Watch, error) {
	if s.Check == 0 {
		s.Check = check
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &Watch{source: s, copy: c, stop: stop}
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

// Stop ends the watch. The copy is told nothing any more when it returns.
func (w *Watch) Stop() {
	w.stop()
	w.wait.Wait()
}

// Current reports whether changes are being heard. While they are not, the copy is as it was.
func (w *Watch) Current() bool { return w.current.Load() }

// follow keeps a watch, one after the other.
func (w *Watch) follow(ctx context.Context, loaded func()) {
	for ctx.Err() == nil {
		if updates, err := w.source.watch(ctx); err == nil {
			w.receive(ctx, updates.Updates(), loaded)
			unwatch(updates)
		}
		w.current.Store(false)
		pause := time.NewTimer(rewatch)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// watch begins a watch of the client library, which may wait 5 s for a server that is away although
// ctx has ended.
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

// unwatchPatience bounds how long the server is waited for at the end of a watch.
const unwatchPatience = 500 * time.Millisecond

// unwatch ends a watch of the client library. Its Stop deletes the consumer on the server and waits
// 5 s for the answer (nats.go: Subscription.Unsubscribe), also when the server is away. A consumer
// that is not deleted ends by itself.
func unwatch(updates jetstream.KeyWatcher) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = updates.Stop()
	}()
	patience := time.NewTimer(unwatchPatience)
	defer patience.Stop()
	select {
	case <-stopped:
	case <-patience.C:
	}
}

// receive takes in what a watch tells, until it breaks.
func (w *Watch) receive(ctx context.Context, updates <-chan jetstream.KeyValueEntry, loaded func()) {
	loading, revision, missed := w.copy.Load(), uint64(0), false
	looks := time.NewTicker(w.source.Check)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			before := missed
			if missed = w.isBehind(ctx, revision); missed && before {
				return
			}
		case entry, ok := <-updates:
			switch {
			case !ok:
				return
			case entry == nil:
				loading.Done(ctx, revision)
				loading = nil
				w.current.Store(true)
				loaded()
				continue
			case loading != nil:
				loading.Take(entry)
			default:
				w.copy.Take(ctx, entry)
			}
			revision = max(revision, entry.Revision())
		}
	}
}

// isBehind reports whether there is something that was not told by a revision. Who is asked may be
// behind as well: then there is not.
func (w *Watch) isBehind(ctx context.Context, revision uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, w.source.Check)
	defer cancel()
	last, err := w.source.Log.LastRevision(ctx, w.source.Bucket, w.source.Keys)
	return err == nil && last > revision
}
