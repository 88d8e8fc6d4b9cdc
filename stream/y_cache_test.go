package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// Threads are as large as their clients make them: what is kept of them is bounded in bytes, too.
func TestReductionsAreBounded(t *testing.T) {
	t.Parallel()
	c, err := newReductions(8, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	sized := func(seq uint64, bytes int) *Reduction {
		m := agui.Message{ID: "m", Content: agui.TextContent(strings.Repeat("x", bytes))}
		return &Reduction{Seq: seq, Entries: []Entry{{Message: m}}}
	}
	kept := func() string {
		var names []string
		for _, thread := range c.newest.Keys() {
			names = append(names, thread.ID)
		}
		return strings.Join(names, " ")
	}
	for i := range 10 {
		c.keep(Thread{ID: fmt.Sprint(i)}, sized(1, 1000))
	}
	if got, want := kept(), "2 3 4 5 6 7 8 9"; got != want {
		t.Errorf("of 10 small ones %s are kept, want %s", got, want)
	}
	c.keep(Thread{ID: "5"}, sized(2, 1<<19))
	c.keep(Thread{ID: "5"}, sized(1, 1)) // an older one
	c.keep(Thread{ID: "large"}, sized(1, 1<<19))
	if got, want := kept(), "large"; got != want {
		t.Errorf("beside a large one %s are kept, want %s", got, want)
	}
	c.keep(Thread{ID: "larger"}, sized(1, 2<<20))
	if got := kept(); got != "larger" {
		t.Errorf("of one that is larger than all may be %s is kept, want itself", got)
	}
	c.keep(Thread{ID: "small"}, sized(1, 1))
	if got := kept(); got != "small" || c.weight > 2*entryBytes {
		t.Errorf("then %s are kept, counted as %d bytes", got, c.weight)
	}
}
