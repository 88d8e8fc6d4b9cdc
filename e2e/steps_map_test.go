package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/runs"
)

// barrier lets so many requests of tools pass, and stops those behind them until it is opened. Full
// is closed when as many stand before it as are to.
type barrier struct {
	passes, stands int
	full, opened   chan struct{}

	mu     sync.Mutex
	passed int
	stood  int
}

func newBarrier(passes, stands int) *barrier {
	return &barrier{passes: passes, stands: stands, full: make(chan struct{}), opened: make(chan struct{})}
}

func (b *barrier) before(ctx context.Context, d *deed) bool {
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

// packed is what has become of an item.
type packed struct {
	Wrap, Stamp *struct{ Kept string }
	Error       *struct{ Code string }
}

// A map of 500 items, 20 at a time, loses one of its two workers in the middle, for good: the other
// one does the rest. What the tools were asked for stands in their journal.
func TestMapLosesAWorker(t *testing.T) {
	t.Parallel()
	const items, atOnce = 500, 20
	w, b := openWorkshop(t), newBarrier(items/2, atOnce)
	w.before = b.before
	c := newCluster(t)
	c.agents = w.agents(t)
	c.settings = w.environ(c.agents)
	c.open(t)
	api := c.startAPI(t)
	dies := c.startWorker(t)
	c.startWorker(t)
	names := make([]string, items)
	for i := range names {
		names[i] = fmt.Sprintf("item %d %s", i, mark)
	}
	began := time.Now()
	e := w.start(t, api.endpoint, "packer", func(in *input) { in.State = map[string]any{"items": names} })
	e.within(t, 4*time.Minute)
	select {
	case <-b.full:
	case <-e.reader.ctx.Done():
		t.Fatalf("%d items do not come to the middle together", atOnce)
	}
	t.Logf("in the middle after %s", time.Since(began).Round(time.Millisecond))
	dies.kill()
	close(b.opened)
	e.watch(t, nil)
	t.Logf("all of it took %s, and showed %d events", time.Since(began).Round(time.Millisecond), len(e.reader.events))

	var got []packed
	decodeStep(t, api.endpoint, e.reader.in, "packed", &got)
	if len(got) != items {
		t.Fatalf("there are %d outputs", len(got))
	}
	requests := map[string]int{}
	for _, d := range w.done(e.name) {
		requests[d.what]++
	}
	again, unknown := 0, 0
	for i, p := range got {
		n := requests[names[i]]
		switch kept := p.Wrap; {
		case i%2 == 0 && (kept == nil || kept.Kept != names[i] || n < 1 || p.Error != nil):
			t.Errorf("item %d, which may be wrapped again, was after %d requests: %+v", i, n, p)
		case i%2 == 0 && n > 1:
			again++
		case i%2 == 1 && p.Error != nil && p.Error.Code == "tool_failed" && n <= 1:
			unknown++
		case i%2 == 1 && (p.Stamp == nil || p.Stamp.Kept != names[i] || n != 1):
			t.Errorf("item %d, which may be stamped once, was after %d requests: %+v", i, n, p)
		}
	}
	t.Logf("%d items were wrapped again, of %d it is unknown whether they were stamped", again, unknown)
	if again+unknown == 0 || again+unknown > atOnce {
		t.Errorf("%d items were cut off by the kill", again+unknown)
	}
	if w.busiest != atOnce {
		t.Errorf("up to %d items were under way at once", w.busiest)
	}
	checkMapHistory(t, api.endpoint, e.reader.in, items)
}

// checkMapHistory checks that what stands in histories of a map is small: of each item its
// beginning and its end.
func checkMapHistory(t *testing.T, p *endpoint, in input, items int) {
	t.Helper()
	events, size := 0, 0
	for _, h := range p.histories(t, in) {
		if largest := largestPayload(t, h); largest > runs.MaxPayload {
			t.Errorf("a payload has %d bytes", largest)
		}
		events, size = events+len(h.GetEvents()), size+proto.Size(h)
	}
	t.Logf("the history of %d items has %d events with %d bytes", items, events, size)
	if events > 10*items || size > 4<<10*items {
		t.Errorf("the history of %d items has %d events with %d bytes", items, events, size)
	}
}

// histories returns those of all executions of a thread, the last one first.
func (p *endpoint) histories(t *testing.T, in input) []*historypb.History {
	t.Helper()
	c, err := p.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []*historypb.History
	for execution := ""; ; {
		h, err := fetchHistory(t.Context(), c, "thread/default/"+in.ThreadID, execution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
		if execution = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); execution == "" {
			return all
		}
	}
}

// decodeStep decodes the output of a step.
func decodeStep(t *testing.T, p *endpoint, in input, step string, into any) {
	t.Helper()
	outputs, _ := p.stateOf(t, in)["steps"].(map[string]any)
	body, err := json.Marshal(outputs[step])
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
