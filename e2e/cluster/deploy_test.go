package cluster

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// finish lets a run continue to its end, which must be a success.
func (r *deployedRun) finish(t *testing.T) {
	t.Helper()
	r.Release()
	r.reader.Finish(t)
	if got := kit.Outcome(r.reader.Events[len(r.reader.Events)-1]); got != "success" {
		t.Errorf("end of the run = %s, want success", r.reader.Events[len(r.reader.Events)-1].Data)
	}
}

// wantTrace checks which versions and workers have worked on a run.
func (d *deployment) wantTrace(t *testing.T, what string, r *deployedRun, want ...string) {
	t.Helper()
	if got := d.trace(t, r.in); !slices.Equal(got, want) {
		t.Errorf("%s: worked on by %q, want %q", what, got, want)
	}
}

// TestDeployVersion: a version is deployed while another one works. New runs start on it. An active
// run moves to it between two turns, and a run in its last turn does not move. A worker of the old
// version that restarts changes nothing. An operator can roll back.
func TestDeployVersion(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t)
	d.startVersion(t, "old", "v1")
	early, late := d.startRun(t, 1), d.startRun(t, 2)
	d.startVersion(t, "new", "v2")
	fresh := d.startRun(t, kit.NoTurn)
	fresh.finish(t)
	d.wantTrace(t, "a run after the deploy", fresh, "v2: new")
	d.startVersion(t, "old again", "v1")
	again := d.startRun(t, kit.NoTurn)
	again.finish(t)
	d.wantTrace(t, "a second run after the deploy", again, "v2: new")
	late.finish(t)
	d.wantTrace(t, "a run in its last turn", late, "v1: old")
	early.finish(t)
	got := d.trace(t, early.in)
	if len(got) != 2 || got[1] != "v2: new" {
		t.Errorf("a run in its first turn: worked on by %q, want it to move to v2 after that", got)
	}
	back := d.startRun(t, 1)
	d.rollBack(t, "v1")
	back.finish(t)
	if got := d.trace(t, back.in); len(got) != 2 || got[0] != "v2: new" || !strings.HasPrefix(got[1], "v1: ") {
		t.Errorf("a run of the time before v2 was rolled back: worked on by %q, want it to move to v1", got)
	}
	for _, r := range []*deployedRun{early, late, fresh, again, back} {
		if first, second := r.Invocations(1), r.Invocations(2); len(first) != 1 || len(second) != 1 || len(r.Invocations(kit.TurnTool)) != 1 {
			t.Errorf("%d and %d model calls, want one a turn", len(first), len(second))
		}
	}
}

// rollBack makes a version current, as an operator does, and waits until every task queue has it.
func (d *deployment) rollBack(t *testing.T, build string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	h := d.temporal.WorkerDeploymentClient().GetHandle("perdure")
	if _, err := h.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build}); err != nil {
		t.Fatal(err)
	}
	for {
		now, err := d.temporal.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: d.Addrs.Namespace, DeploymentName: "perdure",
		})
		if err != nil {
			t.Fatal(err)
		}
		if now.GetWorkerDeploymentInfo().GetRoutingConfigUpdateState() == enums.ROUTING_CONFIG_UPDATE_STATE_COMPLETED {
			return
		}
	}
}

// TestDeployFirstVersion: workers get versions while a run is active. The run continues on the
// first version.
func TestDeployFirstVersion(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t)
	plain := d.StartWorker(t)
	r := d.startRun(t, 1)
	d.startVersion(t, "new", "v1")
	if err := plain.Stop(); err != nil {
		t.Error(err)
	}
	r.finish(t)
	if got := d.trace(t, r.in); !strings.HasSuffix(got[len(got)-1], "v1: new") && !strings.HasSuffix(got[len(got)-1], " new") {
		t.Errorf("the run was worked on by %q, want it to end on v1", got)
	}
}

// TestDeployDrain: a worker of the old version that stops finishes the calls that end in time, and
// hands the others to another worker of its version, although a newer version is current.
func TestDeployDrain(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t)
	leaving := d.startVersion(t, "leaving", "v1", "PERDURE_STOP_TIMEOUT=3s")
	ends, stays := d.startRun(t, 2), d.startRun(t, 2)
	d.startVersion(t, "staying", "v1")
	d.startVersion(t, "new", "v2")
	var stopping errgroup.Group
	stopping.Go(leaving.Stop)
	ends.finish(t)
	if err := stopping.Wait(); err != nil {
		t.Error(err)
	}
	stays.finish(t)
	d.wantTrace(t, "the run whose call went on", stays, "v1: leaving staying")
	if n := len(stays.Invocations(2)); n != 2 {
		t.Errorf("its last turn was called %d times, want twice", n)
	}
	if n := len(ends.Invocations(2)); n != 1 {
		t.Errorf("number of the model calls that could end = %d, want 1", n)
	}
}

// TestDeployParked: a parked run has no version. It continues on the current version, even if all
// workers of its old version are gone.
func TestDeployParked(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t, "PERDURE_PARK_AFTER=100ms")
	old := d.startVersion(t, "old", "v1")
	r := d.startRun(t, 1)
	kit.PostThreadAction(t, d.api.Endpoint, r.in, "pause", http.StatusNoContent)
	r.Release()
	r.reader.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
	kit.AwaitWorkflowType(t, d.api.Endpoint, r.in, runs.TypeParked)
	d.startVersion(t, "new", "v2")
	if err := old.Stop(); err != nil {
		t.Error(err)
	}
	kit.PostThreadAction(t, d.api.Endpoint, r.in, "resume", http.StatusNoContent)
	r.finish(t)
	got := d.trace(t, r.in)
	if len(got) != 3 || got[0] != "v1: old" || got[2] != "v2: new" {
		t.Errorf("versions that executed the run: got %q, want v1, optional versions for the parked part, and v2", got)
	}
}

// TestDeployStranded: the last worker of a version dies during a run. The run waits, and continues
// when an operator moves it to the current version.
func TestDeployStranded(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t)
	last := d.startVersion(t, "last", "v1")
	r := d.startRun(t, 2)
	d.startVersion(t, "new", "v2")
	last.Kill()
	d.awaitStranded(t, r.in)
	_, err := d.temporal.UpdateWorkflowExecutionOptions(t.Context(), client.UpdateWorkflowExecutionOptionsRequest{
		WorkflowId: "thread/default/" + r.in.ThreadID,
		WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
			VersioningOverride: &client.VersioningOverrideChange{Value: &client.AutoUpgradeVersioningOverride{}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	d.wantTrace(t, "the run", r, "v1 v2: last new")
}
