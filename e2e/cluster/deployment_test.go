package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// deployment is a cluster whose workers have versions, with a pausable model and observed tools.
type deployment struct {
	*kit.PausableModel
	*kit.Cluster
	api      *kit.API
	temporal client.Client
	workers  map[string]string // names by process id
}

// setupDeployment starts a cluster with Worker Versioning.
func setupDeployment(t *testing.T, settings ...string) *deployment {
	t.Helper()
	if err := kit.BuildObserved(); err != nil {
		t.Fatal(err)
	}
	s := kit.StartPausableModel(t)
	c := &kit.Cluster{Programs: kit.ObservedPrograms, Agents: filepath.Join("testdata", "chaos"), Env: append(s.Environ(), settings...)}
	c.InspectAtEnd(t)
	c.StartServers(t)
	d := &deployment{PausableModel: s, Cluster: c, api: c.StartAPI(t), workers: map[string]string{}}
	var err error
	if d.temporal, err = d.api.DialTemporal(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.temporal.Close)
	return d
}

// startVersion starts a worker of a version, with a name for the test. The first worker of a
// version makes it current.
func (d *deployment) startVersion(t *testing.T, name, build string, settings ...string) *kit.Process {
	t.Helper()
	usual := d.Env
	defer func() { d.Env = usual }()
	d.Env = slices.Concat(usual, []string{"PERDURE_DEPLOYMENT=perdure", "PERDURE_BUILD_ID=" + build, "PERDURE_PROMOTE=true"}, settings)
	p := d.StartWorker(t)
	d.workers[fmt.Sprint(p.Cmd.Process.Pid)] = name
	return p
}

// deployedRun is a run on a deployment.
type deployedRun struct {
	*kit.ModelScript
	in     kit.Input
	reader *kit.Follower
}

// startRun starts a run that pauses in a turn, and waits until it does and its model call has left
// the workflow task; kit.NoTurn = it does not pause.
func (d *deployment) startRun(t *testing.T, turn int) *deployedRun {
	t.Helper()
	r := &deployedRun{ModelScript: kit.NewModelScript("observe", turn, 0)}
	d.AddScript(r.ModelScript)
	t.Cleanup(r.Release)
	r.in = kit.NewInput(r.Prompt())
	r.reader = d.api.FollowAgent(t, "/v1/agents/observed/runs", r.in)
	if turn == kit.NoTurn {
		return r
	}
	select {
	case <-r.Paused:
	case <-r.reader.Ctx.Done():
		t.Fatalf("the model is not called in turn %d: %v", turn, r.reader.Ctx.Err())
	}
	// Until then the run may have no version, and a step that follows the call in the same workflow
	// task does not learn of a deploy.
	if err := kit.AwaitActivity(r.reader.Ctx, d.api.Endpoint, r.in, runs.ActivityCallModel); err != nil {
		t.Fatal(err)
	}
	return r
}

// trace waits for the workflow of a run to close. It returns for each of its executions the versions of
// its workflow tasks, and the workers of these and of its activities.
func (d *deployment) trace(t *testing.T, in kit.Input) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	// The log has the end of the run before Temporal has that of the workflow.
	if err := d.temporal.GetWorkflow(ctx, "thread/default/"+in.ThreadID, "").Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	var trace []string
	for execution := ""; ; {
		history, err := kit.FetchHistory(ctx, d.temporal, "thread/default/"+in.ThreadID, execution)
		if err != nil {
			t.Fatal(err)
		}
		trace = append(trace, d.traceOne(history))
		execution = history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if execution == "" {
			slices.Reverse(trace)
			return trace
		}
	}
}

// traceOne returns the builds and the workers of a history, in their order.
func (d *deployment) traceOne(h *historypb.History) string {
	var builds, workers []string
	note := func(list *[]string, who string) {
		if !slices.Contains(*list, who) {
			*list = append(*list, who)
		}
	}
	for _, e := range h.GetEvents() {
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			note(&builds, a.GetDeploymentVersion().GetBuildId())
			note(&workers, d.workerOf(a.GetIdentity()))
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			note(&workers, d.workerOf(a.GetIdentity()))
		}
	}
	return strings.Join(builds, " ") + ": " + strings.Join(workers, " ")
}

// workerOf returns the name of a worker by its identity, which has the host, the process id and a
// random part.
func (d *deployment) workerOf(identity string) string {
	parts := strings.Split(identity, "-")
	if len(parts) < 3 {
		return identity
	}
	return d.workers[parts[len(parts)-2]]
}

// awaitStranded waits until no worker takes the work of a run: its workflow task, or another attempt
// of its activity.
func (d *deployment) awaitStranded(t *testing.T, in kit.Input) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for {
		now, err := d.temporal.DescribeWorkflowExecution(ctx, "thread/default/"+in.ThreadID, "")
		if err != nil {
			t.Fatal(errors.Join(err, context.Cause(ctx)))
		}
		task, pending := now.GetPendingWorkflowTask(), now.GetPendingActivities()
		if task.GetState() == enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && time.Since(task.GetScheduledTime().AsTime()) > time.Second ||
			len(pending) == 1 && pending[0].GetAttempt() > 1 && pending[0].GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED {
			return
		}
	}
}
