package pipelines

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// TestPipelinesContinueAsNew: pipelines continue as new every few steps: between steps and turns,
// in a loop, in branches, and while branches wait for approval and the thread is parked. Their
// workers are killed at random moments. The outcome is that of an undisturbed pipeline in one
// execution.
func TestPipelinesContinueAsNew(t *testing.T) {
	t.Parallel()
	const errandCount, kills = 2, 3
	calm := setupDev(t)
	calm.runUndisturbed(t, "walker")
	want, events := calm.undisturbed["walker"], calm.events["walker"]

	s := kit.NewCluster(t)
	w := startJournalServer(t)
	s.Agents = w.agents(t)
	s.Env = append(w.environ(s.Agents), "PERDURE_PARK_AFTER=100ms")
	s.StartServers(t, "-history-events", "20")
	api := s.StartAPI(t)
	busy, idle := s.StartWorker(t), s.StartWorker(t)
	var errands []*pipelineRun
	for range errandCount {
		e := w.start(t, api.Endpoint, "walker")
		e.setTimeout(t, 4*time.Minute)
		errands = append(errands, e)
	}
	for i, e := range errands {
		at := moments(rand.New(rand.NewPCG(1, uint64(i))), events, kills)
		e.follow(t, func(seen int) {
			if last := e.reader.Events[seen-1]; last.Terminal() && kit.Outcome(last) == "interrupt" {
				kit.AwaitWorkflowType(t, api.Endpoint, e.reader.In, runs.TypeParked)
			}
			if len(at) > 0 && seen == at[0] {
				busy.Kill()
				busy, idle, at = idle, s.StartWorker(t), at[1:]
			}
		})
		e.checkOnce(t, kills*errandCount*2)
		want.wantSame(t, fmt.Sprintf("run %d", i), e.result(t))
		e.checkFollower(t)
		checkContinued(t, api.Endpoint, e.reader.In)
	}
}

// checkContinued checks that a thread had many executions. Its branches may have one each: a branch of
// short steps is one workflow task, and only the next task learns that the history is long.
func checkContinued(t *testing.T, p *kit.Endpoint, in kit.Input) {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := kit.ListExecutions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	thread, executions := "thread/default/"+in.ThreadID, map[string]int{}
	for _, x := range all {
		if id := x.GetExecution().GetWorkflowId(); strings.HasPrefix(id, thread) {
			executions[strings.TrimPrefix(id, thread)]++
		}
	}
	t.Logf("executions: %v", executions)
	if n := executions[""]; n < 6 {
		t.Errorf("number of executions of %s = %d, want at least 6", thread, n)
	}
}
