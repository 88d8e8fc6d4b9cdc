package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// barrier lets a number of tool requests pass and holds further requests until it opens. full is
// closed when enough requests wait.
type barrier struct {
	passes, stands int
	full, opened   chan struct{}

	mu     sync.Mutex
	passed int
	stood  int
}

// newBarrier returns a barrier that passes some requests and holds the next ones.
func newBarrier(passes, stands int) *barrier {
	return &barrier{passes: passes, stands: stands, full: make(chan struct{}), opened: make(chan struct{})}
}

// before holds a request at the barrier.
func (b *barrier) before(ctx context.Context, d *request) bool {
	if d.tool == "model" {
		return true
	}
	b.mu.Lock()
	b.passed++
	passes := b.passed <= b.passes
	if !passes {
		if b.stood++; b.stood == b.stands {
			close(b.full)
		}
	}
	b.mu.Unlock()
	if passes {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-b.opened:
		return ctx.Err() == nil
	}
}

// itemResult is the output of the map for one item.
type itemResult struct {
	Wrap, Stamp *struct{ Kept string }
	Error       *struct{ Code string }
}

// TestMapSurvivesWorker: a map of 500 items, 20 at a time, loses one of its two workers for good.
// The other worker does the rest, and the journal has each tool call.
func TestMapSurvivesWorker(t *testing.T) {
	t.Parallel()
	const items, atOnce = 500, 20
	w, b := startJournalServer(t), newBarrier(items/2, atOnce)
	w.before = b.before
	c := kit.NewCluster(t)
	c.Agents = w.agents(t)
	c.Env = w.environ(c.Agents)
	c.StartServers(t)
	api := c.StartAPI(t)
	dies := c.StartWorker(t)
	c.StartWorker(t)
	names := make([]string, items)
	for i := range names {
		names[i] = fmt.Sprintf("item %d %s", i, kit.Mark)
	}
	began := time.Now()
	e := w.startWith(t, api.Endpoint, "packer", func(in *kit.Input) { in.State = map[string]any{"items": names} })
	e.setTimeout(t, 4*time.Minute)
	select {
	case <-b.full:
	case <-e.reader.Ctx.Done():
		t.Fatalf("%d items do not reach the middle step together", atOnce)
	}
	t.Logf("in the middle after %s", time.Since(began).Round(time.Millisecond))
	dies.Kill()
	close(b.opened)
	e.follow(t, nil)
	t.Logf("all of it took %s, and showed %d events", time.Since(began).Round(time.Millisecond), len(e.reader.Events))

	var got []itemResult
	decodeStep(t, api.Endpoint, e.reader.In, "packed", &got)
	if len(got) != items {
		t.Fatalf("number of outputs = %d, want %d", len(got), items)
	}
	requests := map[string]int{}
	for _, d := range w.requestsOf(e.name) {
		requests[d.what]++
	}
	again, unknown := 0, 0
	for i, p := range got {
		n := requests[names[i]]
		switch kept := p.Wrap; {
		case i%2 == 0 && (kept == nil || kept.Kept != names[i] || n < 1 || p.Error != nil):
			t.Errorf("item %d, which may be repeated, after %d requests = %+v, want its output", i, n, p)
		case i%2 == 0 && n > 1:
			again++
		case i%2 == 1 && p.Error != nil && p.Error.Code == "tool_failed" && n <= 1:
			unknown++
		case i%2 == 1 && (p.Stamp == nil || p.Stamp.Kept != names[i] || n != 1):
			t.Errorf("item %d: stamp requests: got %d, want at most 1: %+v", i, n, p)
		}
	}
	t.Logf("%d items were wrapped again; for %d items the outcome of the stamp is unknown", again, unknown)
	if again+unknown == 0 || again+unknown > atOnce {
		t.Errorf("number of items cut off by the kill = %d, want 1 to %d", again+unknown, atOnce)
	}
	if w.maxActive != atOnce {
		t.Errorf("number of concurrent items = %d, want %d", w.maxActive, atOnce)
	}
	checkMapHistory(t, api.Endpoint, e.reader.In, items)
}

// checkMapHistory checks that the history of a map is small: for each item its start and its end.
func checkMapHistory(t *testing.T, p *kit.Endpoint, in kit.Input, items int) {
	t.Helper()
	events, size := 0, 0
	for _, h := range p.Histories(t, in) {
		if largest := kit.LargestPayload(t, h); largest > runs.MaxPayload {
			t.Errorf("size of the largest payload = %d, want at most %d", largest, runs.MaxPayload)
		}
		events, size = events+len(h.GetEvents()), size+proto.Size(h)
	}
	t.Logf("the history of %d items has %d events with %d bytes", items, events, size)
	if events > 10*items || size > 4<<10*items {
		t.Errorf("history of %d items: got %d events with %d bytes, want at most 10 and 4 KiB for each", items, events, size)
	}
}

// decodeStep decodes the output of a step.
func decodeStep(t *testing.T, p *kit.Endpoint, in kit.Input, step string, into any) {
	t.Helper()
	outputs, _ := p.StateOf(t, in)["perdure.steps"].(map[string]any)
	body, err := json.Marshal(outputs[step])
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
