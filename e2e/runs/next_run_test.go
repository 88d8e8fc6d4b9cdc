package runs

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// setupYoung returns a cluster whose Temporal has the default minimum of a second between the
// starts of an execution and the one that continues it.
func setupYoung(t *testing.T) *kit.Cluster {
	t.Helper()
	c := kit.NewCluster(t)
	c.StartServers(t, "-reuse-interval", "1s")
	return c
}

// TestNextRunBeginsAtOnce: a run that follows soon after the beginning of another one begins at
// once, in the same execution: Temporal would delay an execution that continues a young one.
func TestNextRunBeginsAtOnce(t *testing.T) {
	t.Parallel()
	c := setupYoung(t)
	a := c.StartAPI(t)
	c.StartWorker(t)
	for name, begin := range map[string]func(*testing.T, *kit.API) (kit.Input, time.Duration){
		"approval": approveAtOnce, "queued run": queueShortly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rounds, most = 8, 200 * time.Millisecond
			var took []time.Duration
			together := 0
			for range rounds {
				in, wait := begin(t, a)
				took = append(took, wait)
				if a.ExecutionsOf(t, in) == 1 {
					together++
				}
			}
			slices.Sort(took)
			t.Logf("from the end of a run, or its approval, to the next run: %s; %d of %d in the same execution", took, together, rounds)
			if took[0] > most || together == 0 {
				t.Errorf("shortest time to the next run = %s, with %d in the same execution, want at most %s and at least 1", took[0], together, most)
			}
		})
	}
}

// approveAtOnce ends a run with an approval, approves it, and returns how long the next run takes to
// begin.
func approveAtOnce(t *testing.T, a *kit.API) (in kit.Input, took time.Duration) {
	t.Helper()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	in = kit.NewInput(prompt)
	asked := a.FollowAgent(t, kit.CarefulPath, in)
	asked.Finish(t)
	thread := a.FollowThread(t, in)
	thread.Until(t, kit.Event.Terminal)
	begun := time.Now()
	if status, answer := kit.Decide(t, a.Endpoint, in.ThreadID, kit.InterruptsOf(t, asked.Events)[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approval = %d %v, want 200", status, answer)
	}
	thread.Until(t, func(e kit.Event) bool { return e.Type == "RUN_STARTED" })
	took = time.Since(begun)
	thread.UntilSuccess(t)
	return in, took
}

// queueShortly queues a run while a short one is active, and returns the time from the end of the
// short one to the beginning of the queued one.
func queueShortly(t *testing.T, a *kit.API) (in kit.Input, took time.Duration) {
	t.Helper()
	in = kit.NewInput(kit.Marked("Briefly."))
	second := in.NextRun("run-2", "enqueue", kit.UserMessage(kit.Marked("And then?")))
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.Marked("So.")))
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, kit.Marked("Then this."))
	active := a.Follow(t, in)
	queued := a.Follow(t, second)
	active.Finish(t)
	ended := time.Now()
	queued.Until(t, func(e kit.Event) bool { return e.Type == "RUN_STARTED" })
	took = time.Since(ended)
	queued.Finish(t)
	wantRunAttribute(t, a, in, second.RunID)
	return in, took
}

// wantRunAttribute checks the search attribute of the run in the latest execution of a thread.
func wantRunAttribute(t *testing.T, a *kit.API, in kit.Input, run string) {
	t.Helper()
	temporal, err := a.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	// The log has the end of the run before Temporal has the workflow task that set the attribute.
	if err := temporal.GetWorkflow(t.Context(), "thread/default/"+in.ThreadID, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	attributes := runAttributes(t, temporal, "thread/default/"+in.ThreadID)
	if got := attributes[len(attributes)-1]; got != run {
		t.Errorf("search attribute %s of the last run = %s, want %s", runs.AttributeRun.GetName(), got, run)
	}
}

// runAttributes returns the values of the search attribute of the run that the history of the
// latest execution of a workflow sets, in order.
func runAttributes(t *testing.T, temporal client.Client, workflowID string) (values []string) {
	t.Helper()
	events := temporal.GetWorkflowHistory(t.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
		if fields == nil {
			fields = e.GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes().GetIndexedFields()
		}
		if p := fields[runs.AttributeRun.GetName()]; p != nil {
			var value string
			if err := runs.DataConverter().FromPayload(p, &value); err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	return values
}

// TestKillBetweenRuns: a worker is killed while runs end and queued runs begin in the same
// execution. Each run ends once, in order, and with the right messages.
func TestKillBetweenRuns(t *testing.T) {
	t.Parallel()
	c := setupYoung(t)
	a := c.StartAPI(t)
	busy := c.StartWorker(t)
	const kills, threads = 3, 5
	together := 0
	for kill := range kills {
		idle := c.StartWorker(t)
		var first, second []*kit.Follower
		for i := range threads {
			in := kit.NewInput(kit.Marked("Briefly."))
			next := in.NextRun("run-2", "enqueue", kit.UserMessage(kit.Marked("And then?")))
			kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.Marked("So.")), kit.SlowAnswer(kit.Marked("So.")))
			long := kit.LongText(100 * i)
			kit.SharedModel.AnswerInOrder(t, next.Messages[1].Content, kit.SlowAnswer(long), kit.SlowAnswer(long))
			first, second = append(first, a.Follow(t, in)), append(second, a.Follow(t, next))
		}
		first[kill].Until(t, kit.Event.Terminal)
		first[kill].Cut()
		busy.Kill()
		busy = idle
		for i, f := range second {
			if i != kill {
				first[i].Finish(t)
			}
			f.Finish(t)
			got := kit.ShownMessages(t, f.In.Messages, f.Events, kit.RetractWarning)
			if len(got) != 4 || kit.Outcome(f.Events[len(f.Events)-1]) != "success" {
				t.Errorf("kill %d: messages of thread %d = %+v, want 4; events:\n%s", kill, i, got, strings.Join(kit.EventLines(f.Events), "\n"))
			}
			if n := len(kit.SharedModel.Calls(t, f.In.Messages[1].Content)); n > 2 {
				t.Errorf("kill %d: number of model calls of run %s = %d, want 1 or a repeat", kill, f.In.RunID, n)
			}
			if a.ExecutionsOf(t, f.In) == 1 {
				together++
			}
		}
	}
	t.Logf("%d of %d threads had both runs in one execution", together, kills*threads)
	if together == 0 {
		t.Error("threads with both runs in one execution = 0, want at least 1")
	}
}
