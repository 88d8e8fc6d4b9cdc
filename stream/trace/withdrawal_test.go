package trace

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestFullWithdrawalReadsNoMore: when the text that an attempt has streamed is full, its other records
// are not read.
func TestFullWithdrawalReadsNoMore(t *testing.T) {
	t.Parallel()
	l, run := streamtest.Open(t), stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r"}
	store := snapshot.NewStore(l)
	p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if _, err := store.OpenRun(t.Context(), p, stream.Opening{RunID: "r", Agent: "a", Execution: "e", Continues: "before"}); err != nil {
		t.Fatal(err)
	}
	a, _, err := l.Begin(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Emit(t.Context(), &agui.TextMessageContent{MessageID: "m", Delta: strings.Repeat("x", MaxWithdrawn+1)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	written, err := l.Last(t.Context(), l.LaneSubject(run, stream.LaneMain))
	if err != nil {
		t.Fatal(err)
	}
	full := &attempt{records: []*stream.Record{written, nil}} // a read of the second one would panic
	if err := NewFold(store, run).withdraw(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	if w := full.Withdrawn; w == nil || len(w.Text) != MaxWithdrawn || !w.Truncated {
		t.Errorf("withdrawn = %+v, want %d bytes, truncated", w, MaxWithdrawn)
	}
}
