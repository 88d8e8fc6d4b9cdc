package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Runs that continue as new every few turns lose their workers, again and again and at whatever
// moment: before, while, and after they continue. Each step counts once, and nobody who reads
// misses anything.
func TestContinuedRunsLoseTheirWorkers(t *testing.T) {
	t.Parallel()
	const turns, kills, runs = 60, 5, 4
	c := newCluster(t)
	c.open(t, "-history-events", "60")
	a := c.startAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	busy := c.startWorker(t)
	var readers []*follower
	for range runs {
		f := a.quiet(ctx, newInput(fmt.Sprintf("count to %d, %s", turns, say(""))))
		f.agent = "/v1/agents/tireless/runs"
		readers = append(readers, f)
	}
	for range kills {
		idle := c.startWorker(t)
		for _, f := range readers {
			for range 30 + rand.IntN(50) { // of some 600
				if e, err := f.next(); err != nil || e.terminal() {
					t.Fatalf("%+v, %v", e, err)
				}
			}
		}
		busy.kill()
		busy = idle
	}
	calls := 0
	for _, f := range readers {
		f.finish(t)
		calls += checkCounted(t, a.endpoint, f, turns, kills)
	}
	if calls == runs*(turns+1) {
		t.Error("no kill hit a model call")
	}
}

// checkCounted checks a run that has counted, as it was seen live and as it is seen afterwards, and
// returns how often the model was called.
func checkCounted(t *testing.T, p *endpoint, live *follower, turns, kills int) (calls int) {
	t.Helper()
	in := live.in
	want := in.Messages
	for n := range turns {
		call := modelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":"2*%d"}`, n)}
		want = append(want, callsTools(call), result(strconv.Itoa(2*n)))
	}
	want = append(want, says("Counted."))
	wantMessages(t, want, show(t, in.Messages, live.events, withdrawn))
	again := p.quiet(live.ctx, in)
	again.finish(t)
	wantMessages(t, want, show(t, in.Messages, again.events))
	for _, events := range [][]event{live.events, again.events} {
		for i, e := range events[1:] {
			if e.ID <= events[i].ID {
				t.Errorf("event %s comes behind %s", e.ID, events[i].ID)
			}
		}
	}
	behind := p.quiet(live.ctx, in)
	behind.events = slices.Clone(again.events[:1+rand.IntN(len(again.events)-2)])
	behind.finish(t)
	same(t, "behind an event", again.events, behind.events)
	calls = len(sharedModel.calls(t, in.Messages[0].Content))
	executions := p.executionsOf(t, in)
	t.Logf("%d executions, %d model calls", executions, calls)
	if calls < turns+1 || calls > turns+1+kills {
		t.Errorf("%d model calls for %d turns", calls, turns+1)
	}
	if executions < turns/10 {
		t.Errorf("the run went through %d executions", executions)
	}
	return calls
}
