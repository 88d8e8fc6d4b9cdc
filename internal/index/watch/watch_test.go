package watch

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a copy of the keys below "a.".
type shelf struct {
	mu       sync.Mutex
	keys     map[string]string
	revision uint64
	changed  chan struct{} // has one element after a change
}

// newShelf returns an empty copy.
func newShelf() *shelf { return &shelf{changed: make(chan struct{}, 1)} }

// copy returns the receiver of the copy.
func (s *shelf) copy() Receiver {
	return Receiver{Load: func() Loading { return &delivery{s, map[string]string{}} }, Take: s.take}
}

// tell signals a change.
func (s *shelf) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// take applies a change.
func (s *shelf) take(_ context.Context, e jetstream.KeyValueEntry) {
	defer s.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = e.Revision()
	put(s.keys, e)
}

// put applies an entry to keys.
func put(keys map[string]string, e jetstream.KeyValueEntry) {
	if delete(keys, e.Key()); e.Operation() == jetstream.KeyValuePut {
		keys[e.Key()] = string(e.Value())
	}
}

type delivery struct {
	shelf *shelf
	keys  map[string]string
}

func (d *delivery) Take(e jetstream.KeyValueEntry) { put(d.keys, e) }

func (d *delivery) Done(_ context.Context, revision uint64) {
	defer d.shelf.tell()
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	d.shelf.keys, d.shelf.revision = d.keys, revision
}

// stuck is a bucket on a server that does not answer: calls of the client library block until
// release, even if their context ends.
type stuck struct {
	jetstream.KeyValue
	watches bool // a watch can be started but not stopped
	release chan struct{}
}

func (s *stuck) Watch(ctx context.Context, keys string, o ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if !s.watches {
		<-s.release
	}
	w, err := s.KeyValue.Watch(ctx, keys, o...)
	return &stuckWatcher{w, s.release}, err
}

type stuckWatcher struct {
	jetstream.KeyWatcher
	release chan struct{}
}

func (w *stuckWatcher) Stop() error {
	<-w.release
	return w.KeyWatcher.Stop()
}

// TestStopWithoutAnswerOfLog: a watch stops promptly while the log does not answer, because
// its process is shutting down.
func TestStopWithoutAnswerOfLog(t *testing.T) {
	log := streamtest.Open(t)
	bucket, err := log.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "shelf"})
	if err != nil {
		t.Fatal(err)
	}
	for name, watches := range map[string]bool{"while a watch begins": false, "while a watch ends": true} {
		t.Run(name, func(t *testing.T) {
			b := &stuck{bucket, watches, make(chan struct{})}
			defer close(b.release)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				w, err := Begin(ctx, Source{Log: log, Bucket: b, Keys: "a.>", Check: time.Hour}, newShelf().copy())
				if err == nil {
					w.Stop()
				}
			}()
			if !watches {
				cancel()
			}
			defer cancel()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Error("the watch has not ended")
			}
		})
	}
}

// until waits until the copy has the wanted content.
func (s *shelf) until(t *testing.T, want map[string]string) {
	t.Helper()
	for {
		s.mu.Lock()
		got := maps.Clone(s.keys)
		s.mu.Unlock()
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-s.changed:
		case <-t.Context().Done():
			t.Fatalf("there is %v, want %v", got, want)
		}
	}
}

// open returns a source, and a function that writes an entry and returns its revision.
func open(t *testing.T) (source Source, write func(key, value string) uint64) {
	t.Helper()
	l := streamtest.Open(t)
	kv, err := l.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "shelf"})
	if err != nil {
		t.Fatal(err)
	}
	write = func(key, value string) uint64 {
		t.Helper()
		revision, err := kv.PutString(t.Context(), key, value)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	return Source{Log: l, Bucket: kv, Keys: "a.>"}, write
}

// TestCopyFollowsLog: a copy gets the existing entries and then the changes. It gets no entries of
// other keys.
func TestCopyFollowsLog(t *testing.T) {
	t.Parallel()
	source, write := open(t)
	write("a.1", "one")
	write("b.1", "other")
	last := write("a.2", "two")
	s := newShelf()
	w, err := Begin(t.Context(), source, s.copy())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if want := map[string]string{"a.1": "one", "a.2": "two"}; !maps.Equal(s.keys, want) || s.revision != last || !w.Current() {
		t.Fatalf("loaded is %v up to %d, want %v up to %d", s.keys, s.revision, want, last)
	}
	write("a.1", "uno")
	if err := source.Bucket.Delete(t.Context(), "a.2"); err != nil {
		t.Fatal(err)
	}
	s.until(t, map[string]string{"a.1": "uno"})
}

func TestWaitForCopyEndsWithContext(t *testing.T) {
	t.Parallel()
	source, _ := open(t)
	source.Keys = "not a subject" // so that the watch is retried repeatedly
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Begin(ctx, source, newShelf().copy()); err == nil {
		t.Error("Begin with an ended context: got no error, want one")
	}
}

// watched is a bucket whose watches the test can end.
type watched struct {
	jetstream.KeyValue
	begun chan chan jetstream.KeyValueEntry
}

func (b *watched) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	end := make(chan jetstream.KeyValueEntry, 8)
	b.begun <- end
	return watcher{end}, nil
}

type watcher struct{ updates chan jetstream.KeyValueEntry }

func (w watcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }
func (watcher) Stop() error                               { return nil }

// TestBrokenWatchIsRenewed: a watch that ends, or that misses a change, is restarted, and only
// then. Until the new watch has loaded, the copy keeps its content and its revision.
func TestBrokenWatchIsRenewed(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(end chan jetstream.KeyValueEntry, write func(key, value string) uint64){
		"the watch ends":             func(end chan jetstream.KeyValueEntry, _ func(string, string) uint64) { close(end) },
		"the watch delivers nothing": func(_ chan jetstream.KeyValueEntry, write func(string, string) uint64) { write("a.1", "uno") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, write := open(t)
			first := write("a.1", "one")
			bucket := &watched{KeyValue: source.Bucket, begun: make(chan chan jetstream.KeyValueEntry, 1)}
			source.Bucket, source.Check = bucket, 20*time.Millisecond
			s := newShelf()
			end := make(chan chan jetstream.KeyValueEntry, 1)
			go func() {
				to := <-bucket.begun
				entry, _ := bucket.Get(t.Context(), "a.1")
				to <- entry
				to <- nil
				end <- to
			}()
			w, err := Begin(t.Context(), source, s.copy())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			select {
			case <-bucket.begun:
				t.Fatal("a watch was restarted although nothing changed")
			case <-time.After(10 * source.Check):
			}
			breaks(<-end, write)
			again := <-bucket.begun
			second := write("a.2", "two")
			entry, err := bucket.Get(t.Context(), "a.2")
			if err != nil {
				t.Fatal(err)
			}
			again <- entry
			s.mu.Lock()
			if s.revision != first || len(s.keys) != 1 || w.Current() {
				t.Errorf("copy before the reload = %v up to revision %d, want one key, and that it is not current", s.keys, s.revision)
			}
			s.mu.Unlock()
			again <- nil
			s.until(t, map[string]string{"a.2": "two"})
			if s.revision != second {
				t.Errorf("revision of the copy: got %d, want %d", s.revision, second)
			}
		})
	}
}
