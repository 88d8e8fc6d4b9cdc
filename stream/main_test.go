package stream_test

import (
	"flag"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestMain runs the tests. The test's program is also a node of the clusters, which are processes
// so that tests can kill them.
func TestMain(m *testing.M) {
	if options := os.Getenv(nodeOptions); options != "" {
		serveNode(options)
		return
	}
	// Most tests wait for servers, so more of them run at a time than there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, streamtest.Leaks())
}

var stores sync.Map // by log

// snapshots returns the snapshot store of a log, the same store for each call.
func snapshots(l *stream.Log) *snapshot.Store {
	s, _ := stores.LoadOrStore(l, snapshot.NewStore(l))
	return s.(*snapshot.Store)
}

// viewer attaches readers to a follower's log.
func viewer(f *stream.Follower) view.Viewer {
	return view.Viewer{Follower: f, Snapshots: snapshots(f.Log())}
}
