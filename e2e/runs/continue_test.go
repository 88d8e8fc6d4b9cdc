package runs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestContinuedRunsSurviveKills: runs that continue as new every few turns lose their workers
// at random moments: before, during and after they continue. Each step counts once, and readers
// miss nothing.
func TestContinuedRunsSurviveKills(t *testing.T) {
	t.Parallel()
	const turns, kills, runs = 60, 5, 4
	c := kit.NewCluster(t)
	c.StartServers(t, "-history-events", "30")
	a := c.StartAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	busy := c.StartWorker(t)
	var readers []*kit.Follower
	for range runs {
		f := a.NewUnrecordedFollower(ctx, kit.NewInput(fmt.Sprintf("count to %d, %s", turns, kit.Marked(""))))
		f.Agent = "/v1/agents/tireless/runs"
		readers = append(readers, f)
	}
	for range kills {
		idle := c.StartWorker(t)
		for _, f := range readers {
			for range 30 + rand.IntN(50) { // of some 600
				if e, err := f.Next(); err != nil || e.Terminal() {
					t.Fatalf("next event = %+v, %v, want one before the end", e, err)
				}
			}
		}
		busy.Kill()
		busy = idle
	}
	calls := 0
	for _, f := range readers {
		f.Finish(t)
		calls += checkCounted(t, a.Endpoint, f, turns, kills)
	}
	if calls == runs*(turns+1) {
		t.Error("number of killed model calls = 0, want at least 1")
	}
}

// checkCounted checks a run that has counted, as read live and afterwards, and returns the number
// of model calls.
func checkCounted(t *testing.T, p *kit.Endpoint, live *kit.Follower, turns, kills int) (calls int) {
	t.Helper()
	in := live.In
	want := in.Messages
	for n := range turns {
		call := kit.ModelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":"2*%d"}`, n)}
		want = append(want, kit.ToolCallMessage(call), kit.ToolMessage(strconv.Itoa(2*n)))
	}
	want = append(want, kit.AssistantMessage("Counted."))
	kit.WantMessages(t, want, kit.ShownMessages(t, in.Messages, live.Events, kit.RetractWarning))
	again := p.NewUnrecordedFollower(live.Ctx, in)
	again.Finish(t)
	kit.WantMessages(t, want, kit.ShownMessages(t, in.Messages, again.Events))
	for _, events := range [][]kit.Event{live.Events, again.Events} {
		for i, e := range events[1:] {
			if e.ID <= events[i].ID {
				t.Errorf("event %s follows %s, want a later one", e.ID, events[i].ID)
			}
		}
	}
	later := p.NewUnrecordedFollower(live.Ctx, in)
	later.Events = slices.Clone(again.Events[:1+rand.IntN(len(again.Events)-2)])
	later.Finish(t)
	kit.WantSameEvents(t, "after an event", again.Events, later.Events)
	calls = len(kit.SharedModel.Calls(t, in.Messages[0].Content))
	executions := p.ExecutionsOf(t, in)
	t.Logf("%d executions, %d model calls", executions, calls)
	if calls < turns+1 || calls > turns+1+kills {
		t.Errorf("number of model calls = %d, want %d and at most %d repeats", calls, turns+1, kills)
	}
	if executions < turns/10 {
		t.Errorf("number of executions = %d, want at least %d", executions, turns/10)
	}
	return calls
}
