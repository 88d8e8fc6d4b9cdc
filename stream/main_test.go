package stream_test

import (
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// The test's program is also the nodes of its clusters, which are processes so that they can be
// killed.
func TestMain(m *testing.M) {
	if options := os.Getenv(nodeOptions); options != "" {
		serveNode(options)
		return
	}
	goleak.VerifyTestMain(m, streamtest.Leaks())
}

var stores sync.Map // by log

// snapshots returns the snapshots of a log: for the same log the same store.
func snapshots(l *stream.Log) *snapshot.Store {
	s, _ := stores.LoadOrStore(l, snapshot.NewStore(l))
	return s.(*snapshot.Store)
}

// viewer attaches readers to the log that a follower follows.
func viewer(f *stream.Follower) view.Viewer {
	return view.Viewer{Follower: f, Snapshots: snapshots(f.Log())}
}
