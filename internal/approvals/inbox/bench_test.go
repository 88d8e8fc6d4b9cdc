package inbox_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

const many = 100_000

// fill writes n approvals directly, without the lookup that a worker would do first.
func fill(b *testing.B, l *stream.Log) {
	b.Helper()
	js, err := jetstream.New(l.Conn(), jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	for n := range many {
		a := approval(n)
		raw, err := json.Marshal(map[string]any{"at": began, "approval": a})
		if err != nil {
			b.Fatal(err)
		}
		key := fmt.Sprintf("$KV.PERDURE_approvals.pending.%s.%012x.%s", tenant, a.RequestedAt.UnixMilli(), a.ID)
		if _, err := js.PublishAsync(key, raw); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
}

// heap returns the size of the heap.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkInbox loads 100,000 approvals and pages through them: from the beginning, from the
// middle, and with filters that match few or none.
func BenchmarkInbox(b *testing.B) {
	l := streamtest.Open(b)
	s, err := inbox.Open(b.Context(), l)
	if err != nil {
		b.Fatal(err)
	}
	fill(b, l)
	before, begun := heap(), time.Now()
	x := watch(b, s)
	took := time.Since(begun)
	b.Logf("%d loaded in %s, %d bytes each", many, took.Round(time.Millisecond), (heap()-before)/many)
	middle, err := x.List(tenant, inbox.Filter{Until: began.Add(many / 2 * time.Minute)}, "", many/2)
	if err != nil || len(middle.Items) != many/2 {
		b.Fatalf("page in the middle: got %d items, %v, want %d", len(middle.Items), err, many/2)
	}
	for name, q := range map[string]struct {
		filter    inbox.Filter
		after     string
		wantItems int
	}{
		"first page":  {inbox.Filter{}, "", 100},
		"middle page": {inbox.Filter{}, middle.Next, 100},
		"agent, tool": {inbox.Filter{Agent: "sales", Tool: "refund"}, "", 100},
		"my role":     {inbox.Filter{Assignee: &inbox.Assignee{Subject: "bob", Roles: []string{"a", "b", "finance"}, Caller: true}}, "", 100},
		"one thread":  {inbox.Filter{Thread: fmt.Sprintf("t%d", many-1)}, "", 1},
		"none":        {inbox.Filter{Assignee: &inbox.Assignee{Subject: "bob", Roles: []string{"a", "b", "c"}, Caller: true}}, "", 0},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := x.List(tenant, q.filter, q.after, 100)
				if err != nil || len(p.Items) != q.wantItems {
					b.Fatalf("page: got %d items, %v, want %d", len(p.Items), err, q.wantItems)
				}
			}
		})
	}
}
