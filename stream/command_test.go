package stream_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// listen returns the commands that a worker of a new connection receives.
func listen(t *testing.T, l *stream.Log) *stream.Commands {
	t.Helper()
	c, err := l.ListenCommands()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// TestUpdatesAreAnnounced: an update of a thread is announced to all workers that wait for one of
// this thread.
func TestUpdatesAreAnnounced(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	workerLog := streamtest.OpenOn(t, s)
	worker, api := listen(t, workerLog), streamtest.OpenOn(t, s)
	here, stop := worker.Updates(stream.Thread{Tenant: "default", ID: "here"})
	defer stop()
	elsewhere, stop := worker.Updates(stream.Thread{Tenant: "other", ID: "here"})
	defer stop()
	if err := workerLog.Conn().Flush(); err != nil { // the server has the subscription
		t.Fatal(err)
	}
	for range 2 { // a waiting update is announced again
		if err := api.AnnounceUpdate(stream.Thread{Tenant: "default", ID: "here"}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-here:
	case <-time.After(time.Minute):
		t.Fatal("the update is not announced")
	}
	select {
	case <-elsewhere:
		t.Error("the update of another tenant's thread is announced")
	default:
	}
}

// TestQuestionsOfWorkers: the worker that knows the answer gives it. Without one, Ask returns nil.
func TestQuestionsOfWorkers(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	asking := listen(t, streamtest.OpenOn(t, s))
	for _, name := range []string{"one", "two"} {
		l := streamtest.OpenOn(t, s)
		worker := listen(t, l)
		defer worker.Answer(func(question []byte) []byte {
			if string(question) != name+"?" {
				return nil
			}
			return []byte(name)
		})()
		if err := l.Conn().Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for question, want := range map[string]string{"one?": "one", "two?": "two", "three?": ""} {
		if got := string(asking.Ask(t.Context(), []byte(question))); got != want {
			t.Errorf("Ask(%q) = %q, want %q", question, got, want)
		}
	}
}
