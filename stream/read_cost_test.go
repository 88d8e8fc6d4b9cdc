package stream_test

import (
	"runtime"
	"testing"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestReadsAllocateLittle: a read of the log allocates about what it reads. Viewers that lag read
// it again and again.
func TestReadsAllocateLittle(t *testing.T) { //nolint:paralleltest // because it measures the process
	const reads, most = 50, 256 << 10
	l := streamtest.Open(t)
	appendRun(t, l, 1, "u1", "a1")
	follower := streamtest.Follow(t, l)
	read := func() int {
		return len(availableEvents(t, viewer(follower).Run(stream.Run{Thread: thread, ID: "run1"}, view.Options{})))
	}
	if read() == 0 {
		t.Error("number of available events = 0, want at least 1")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range reads {
		read()
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / reads
	if each > most {
		t.Errorf("bytes allocated per read = %v, want at most %v", each, most)
	}
}
