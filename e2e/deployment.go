package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// deployment is a cluster whose workers have versions. Its models and tools are on a stage.
type deployment struct {
	*stage
	*cluster
	front    *gateway
	temporal client.Client
	workers  map[string]string // their names by the number of their process
}

func startDeployment(t *testing.T, settings ...string) *deployment {
	t.Helper()
	if err := buildObserved(); err != nil {
		t.Fatal(err)
	}
	s := openStage(t)
	c := &cluster{programs: observedPrograms, agents: filepath.Join("testdata", "performers"), settings: append(s.environ(), settings...)}
	c.prepare(t)
	c.open(t)
	d := &deployment{stage: s, cluster: c, front: c.startAPI(t), workers: map[string]string{}}
	var err error
	if d.temporal, err = d.front.temporal(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.temporal.Close)
	return d
}

// release starts a worker of a version, under a name of its own. The first one of a version makes
// it current.
func (d *deployment) release(t *testing.T, name, build string, settings ...string) *process {
	t.Helper()
	usual := d.settings
	defer func() { d.settings = usual }()
	d.settings = slices.Concat(usual, []string{"PERDURE_DEPLOYMENT=perdure", "PERDURE_BUILD_ID=" + build, "PERDURE_PROMOTE=true"}, settings)
	p := d.startWorker(t)
	d.workers[fmt.Sprint(p.cmd.Process.Pid)] = name
	return p
}

// released is a run on a deployment.
type released struct {
	*play
	in     input
	reader *follower
}

// begin starts a run that stands still in a turn, if that is not nowhere, and waits until it does.
func (d *deployment) begin(t *testing.T, turn int) *released {
	t.Helper()
	r := &released{play: newPlay("observe", turn, 0)}
	d.add(r.play)
	t.Cleanup(r.goOn)
	r.in = newInput(r.prompt())
	r.reader = d.front.followAgent(t, "/v1/agents/performer/runs", r.in)
	if turn == nowhere {
		return r
	}
	select {
	case <-r.held:
	case <-r.reader.ctx.Done():
		t.Fatalf("no model is asked in turn %d: %v", turn, r.reader.ctx.Err())
	}
	return r
}

// trace tells who has worked on a run: for each execution the versions of its workflow tasks, and
// the workers that took its activities.
func (d *deployment) trace(t *testing.T, in input) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var trace []string
	for execution := ""; ; {
		history, err := fetchHistory(ctx, d.temporal, "thread/default/"+in.ThreadID, execution)
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
func (d *deployment) stranded(t *testing.T, in input) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
