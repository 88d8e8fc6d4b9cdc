package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/e2e/kit"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// deployment is a cluster whose workers have versions. Its models and tools are on a stage.
type deployment struct {
	*kit.PausableModel
	*kit.Cluster
	front    *kit.Gateway
	temporal client.Client
	workers  map[string]string // their names by the number of their process
}

func setupDeployment(t *testing.T, settings ...string) *deployment {
	t.Helper()
	if err := kit.BuildObserved(); err != nil {
		t.Fatal(err)
	}
	s := kit.StartPausableModel(t)
	c := &kit.Cluster{Programs: kit.ObservedPrograms, Agents: filepath.Join("testdata", "performers"), Settings: append(s.Environ(), settings...)}
	c.Prepare(t)
	c.Open(t)
	d := &deployment{PausableModel: s, Cluster: c, front: c.StartAPI(t), workers: map[string]string{}}
	var err error
	if d.temporal, err = d.front.Temporal(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.temporal.Close)
	return d
}

// release starts a worker of a version, under a name of its own. The first one of a version makes
// it current.
func (d *deployment) release(t *testing.T, name, build string, settings ...string) *kit.Process {
	t.Helper()
	usual := d.Settings
	defer func() { d.Settings = usual }()
	d.Settings = slices.Concat(usual, []string{"PERDURE_DEPLOYMENT=perdure", "PERDURE_BUILD_ID=" + build, "PERDURE_PROMOTE=true"}, settings)
	p := d.StartWorker(t)
	d.workers[fmt.Sprint(p.Cmd.Process.Pid)] = name
	return p
}

// released is a run on a deployment.
type released struct {
	*kit.ModelScript
	in     kit.Input
	reader *kit.Follower
}

// begin starts a run that stands still in a turn, if that is not nowhere, and waits until it does.
func (d *deployment) begin(t *testing.T, turn int) *released {
	t.Helper()
	r := &released{ModelScript: kit.NewModelScript("observe", turn, 0)}
	d.Add(r.ModelScript)
	t.Cleanup(r.GoOn)
	r.in = kit.NewInput(r.Prompt())
	r.reader = d.front.FollowAgent(t, "/v1/agents/performer/runs", r.in)
	if turn == kit.Nowhere {
		return r
	}
	select {
	case <-r.Held:
	case <-r.reader.Ctx.Done():
		t.Fatalf("no model is asked in turn %d: %v", turn, r.reader.Ctx.Err())
	}
	return r
}

// trace tells who has worked on a run: for each execution the versions of its workflow tasks, and
// the workers that took its activities.
func (d *deployment) trace(t *testing.T, in kit.Input) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
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
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			note(&workers, d.workerOf(a.GetIdentity()))
		}
	}
	return strings.Join(builds, " ") + ": " + strings.Join(workers, " ")
}

// workerOf finds a worker by its identity: host, number of the process, something random.
func (d *deployment) workerOf(identity string) string {
	parts := strings.Split(identity, "-")
	if len(parts) < 3 {
		return identity
	}
	return d.workers[parts[len(parts)-2]]
}

// stranded waits until a run's attempt is lost and no worker takes the next one.
func (d *deployment) stranded(t *testing.T, in kit.Input) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	for {
		now, err := d.temporal.DescribeWorkflowExecution(ctx, "thread/default/"+in.ThreadID, "")
		if err != nil {
			t.Fatal(errors.Join(err, context.Cause(ctx)))
		}
		pending := now.GetPendingActivities()
		if len(pending) == 1 && pending[0].GetAttempt() > 1 && pending[0].GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED {
			return
		}
	}
}
