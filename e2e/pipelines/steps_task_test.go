package pipelines

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/perdure/perdure/e2e/kit"
)

// publishSums publishes a pipeline with a number of short tool calls, and returns where its runs begin.
func publishSums(t *testing.T, p *kit.Endpoint, agent string, n int) string {
	t.Helper()
	p.Publish(t, agent, fmt.Sprintf(`
name: %s
tools: [calculate]
steps:
  - name: sums
    loop:
      max: %d
      until: "false"
      steps:
        - {name: sum, tool: calculate, args: {expression: "${string(round)}+1"}}
`, agent, n))
	return "/v1/agents/" + agent + "/runs"
}

// countResults returns how many tool results the events have.
func countResults(events []kit.Event) (n int) {
	for _, e := range events {
		if e.Type == "TOOL_CALL_RESULT" {
			n++
		}
	}
	return n
}

// scheduled returns the activity types and task queues of the activities in a history.
func scheduled(h *historypb.History) (activities []string) {
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			activities = append(activities, a.GetActivityType().GetName()+" on "+a.GetTaskQueue().GetName())
		}
	}
	return activities
}

// TestShortStepsTakeNoRoundTrips: short tool calls of a pipeline, and the advances between them, take
// place within workflow tasks, and need no activities.
func TestShortStepsTakeNoRoundTrips(t *testing.T) {
	t.Parallel()
	const steps = 30
	in := kit.NewInput(kit.Marked("Sum up."))
	events := kit.Shared.RunAgent(t, publishSums(t, kit.Shared.Endpoint, "sums-short", steps), in)
	if n := countResults(events); n != steps {
		t.Errorf("number of tool results = %d, want %d", n, steps)
	}
	// On a busy machine the steps may take longer than they may stay within one task.
	h := kit.Shared.History(t, in)
	if got := scheduled(h); len(got) > steps/3 {
		t.Errorf("activities = %q, want at most %d for %d calls", got, steps/3, steps)
	}
	if n := len(h.GetEvents()); n > 5*steps {
		t.Errorf("number of history events = %d, want at most %d", n, 5*steps)
	}
}

// TestUpdateDuringShortSteps: the workflow takes an update soon, although one short step follows the
// other within its task.
func TestUpdateDuringShortSteps(t *testing.T) {
	t.Parallel()
	const rounds, steps = 5, 300
	agent := publishSums(t, kit.Shared.Endpoint, "sums-long", steps)
	var took []time.Duration
	for range rounds {
		in := kit.NewInput(kit.Marked("Sum up."))
		f := kit.Shared.FollowAgent(t, agent, in)
		f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
		asked := time.Now()
		kit.PostThreadAction(t, kit.Shared.Endpoint, in, "pause", http.StatusNoContent)
		took = append(took, time.Since(asked))
		kit.PostThreadAction(t, kit.Shared.Endpoint, in, "resume", http.StatusNoContent)
		f.Finish(t)
		if n := countResults(f.Events); n != steps {
			t.Errorf("number of tool results = %d, want %d", n, steps)
		}
		if got := strings.Join(scheduled(kit.Shared.History(t, in)), ", "); !strings.Contains(got, "perdure/process/") {
			t.Errorf("activities = %q, want one on the task queue of the process", got)
		}
	}
	// Without the announcement, an update waits until the task has lasted for 1.2 s.
	if median := slices.Sorted(slices.Values(took))[rounds/2]; median > 600*time.Millisecond {
		t.Errorf("updates took %v, want less than 600ms in the median", took)
	}
}

// TestShortStepsSurviveKills: the process is killed while short steps follow each other within workflow
// tasks. No finished call is repeated, and readers see each result once.
func TestShortStepsSurviveKills(t *testing.T) {
	p := kit.Setup(t)
	const steps, kills = 200, 3
	in := kit.NewInput(kit.Marked("Sum up."))
	f := p.FollowAgent(t, publishSums(t, p.Endpoint, "sums", steps), in)
	for kill := range kills {
		for countResults(f.Events) < (kill+1)*steps/(kills+1) {
			f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
		}
		p.Kill()
		p.Start(t)
	}
	f.Finish(t)
	if n := countResults(f.Events); n != steps {
		t.Errorf("number of tool results = %d, want %d", n, steps)
	}
	if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" {
		t.Errorf("last event = %s, want RUN_FINISHED", last.Data)
	}
}
