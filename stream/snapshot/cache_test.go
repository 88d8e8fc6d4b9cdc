package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// TestSnapshotsAreBounded: the cache is bounded in bytes as well as in number, because threads are
// as large as their clients make them.
func TestSnapshotsAreBounded(t *testing.T) {
	t.Parallel()
	c := newCache(8, 1<<20)
	sized := func(seq uint64, bytes int) *Snapshot {
		m := agui.Message{ID: "m", Content: agui.TextContent(strings.Repeat("x", bytes))}
		return &Snapshot{Seq: seq, Entries: []Entry{{Message: m}}}
	}
	cachedThreads := func() string {
		var names []string
		for _, thread := range c.newest.Keys() {
			names = append(names, thread.ID)
		}
		return strings.Join(names, " ")
	}
	for i := range 10 {
		c.put(stream.Thread{ID: fmt.Sprint(i)}, sized(1, 1000))
	}
	if got, want := cachedThreads(), "2 3 4 5 6 7 8 9"; got != want {
		t.Errorf("after 10 small snapshots: got %s, want %s", got, want)
	}
	c.put(stream.Thread{ID: "5"}, sized(2, 1<<19))
	c.put(stream.Thread{ID: "5"}, sized(1, 1)) // an older snapshot
	c.put(stream.Thread{ID: "large"}, sized(1, 1<<19))
	if got, want := cachedThreads(), "large"; got != want {
		t.Errorf("after a large snapshot: got %s, want %s", got, want)
	}
	c.put(stream.Thread{ID: "larger"}, sized(1, 2<<20))
	if got := cachedThreads(); got != "larger" {
		t.Errorf("after a snapshot above the bound: got %s, want larger", got)
	}
	c.put(stream.Thread{ID: "small"}, sized(1, 1))
	if got := cachedThreads(); got != "small" || c.weight > 2*entryBytes {
		t.Errorf("after another small snapshot: got %s, counted as %d bytes, want small with at most %d", got, c.weight, 2*entryBytes)
	}
}
