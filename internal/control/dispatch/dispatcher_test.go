package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// continuingTemporal is a Temporal client whose execution closes some time after it was offered a
// run, and never answers the offer.
type continuingTemporal struct {
	client.Client
	closes time.Duration
}

func (c *continuingTemporal) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("running", "", "e1")
}

func (c *continuingTemporal) UpdateWorkflow(ctx context.Context, _ client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	<-ctx.Done()
	return nil, &client.WorkflowUpdateServiceTimeoutOrCanceledError{}
}

func (c *continuingTemporal) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return executionHandle{closes: c.closes}
}

type executionHandle struct {
	client.WorkflowRun
	closes time.Duration
}

func (e executionHandle) GetWithOptions(ctx context.Context, _ any, o client.WorkflowRunGetOptions) error {
	if !o.DisableFollowingRuns {
		e.closes = time.Hour // the continued execution stays open
	}
	ctx, cancel := context.WithTimeout(ctx, e.closes)
	defer cancel()
	<-ctx.Done()
	return nil
}

// TestOfferEndsWithExecution: if an execution continues as new before it takes an offer, the
// input is not delayed. The dispatcher looks up the thread again at once.
func TestOfferEndsWithExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dispatch.Dispatcher{Temporal: &continuingTemporal{closes: 10 * time.Millisecond}}
		in := runs.Input{Run: runs.Ref{Tenant: "t", Thread: "t", ID: "r2"}}
		begun := time.Now()
		_, isStarted, err := d.StartOrOffer(t.Context(), in, dispatch.OfferTerms{OnBusy: runs.OnBusyEnqueue}, &snapshot.Snapshot{})
		if took := time.Since(begun); isStarted || err != nil || took > 300*time.Millisecond {
			t.Errorf("dispatch = %v, %v after %s, want false within 300ms", isStarted, err, took)
		}
	})
}

// busyTemporal is a Temporal client whose execution stays open, and queues what it is offered.
type busyTemporal struct{ continuingTemporal }

func (b *busyTemporal) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return queuedHandle{}, nil
}

type queuedHandle struct{ client.WorkflowUpdateHandle }

func (queuedHandle) Get(_ context.Context, result any) error {
	*result.(*runs.SubmitResult) = runs.SubmitResult{Queued: true}
	return nil
}

// TestOfferToExecutionWithNextRun: the log has the end of an execution's run, and the execution has
// begun another one. The dispatcher waits briefly for the execution to close, and then offers the
// input to it.
func TestOfferToExecutionWithNextRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for closes, want := range map[time.Duration]bool{time.Hour: true, 50 * time.Millisecond: false} {
			d := &dispatch.Dispatcher{Temporal: &busyTemporal{continuingTemporal{closes: closes}}}
			in := runs.Input{Run: runs.Ref{Tenant: "t", Thread: "t", ID: "r3"}}
			ended := &snapshot.Snapshot{LastRun: snapshot.LastRun{Run: "r1", RunID: "r1", Execution: "e1", Sealed: true}}
			begun := time.Now()
			result, isStarted, err := d.StartOrOffer(t.Context(), in, dispatch.OfferTerms{OnBusy: runs.OnBusyEnqueue}, ended)
			if took := time.Since(begun); isStarted != want || result.Queued != want || err != nil || took > 200*time.Millisecond {
				t.Errorf("dispatch to an execution that closes after %s = %+v, %v, %v after %s, want queued = %v within 200ms", closes, result, isStarted, err, took, want)
			}
		}
	})
}

// startingTemporal is a Temporal client that accepts workflows, and keeps the options and the input of
// the last one.
type startingTemporal struct {
	client.Client
	options client.StartWorkflowOptions
	input   runs.Input
}

func (s *startingTemporal) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.options, s.input = o, args[0].(runs.Input)
	return nil, nil
}

// TestRunsHaveTheFairnessKeyOfTheirTenant: without it, the tasks of a tenant wait for all earlier
// ones of another tenant.
func TestRunsHaveTheFairnessKeyOfTheirTenant(t *testing.T) {
	t.Parallel()
	temporal := &startingTemporal{}
	d := &dispatch.Dispatcher{Temporal: temporal}
	in := runs.Input{Run: runs.Ref{Tenant: "acme", Thread: "t", ID: "r"}}
	_, isStarted, err := d.StartOrOffer(t.Context(), in, dispatch.OfferTerms{}, &snapshot.Snapshot{})
	if key := temporal.options.Priority.FairnessKey; !isStarted || err != nil || key != "acme" {
		t.Errorf("start = %v, %v with the fairness key %q, want a start with acme", isStarted, err, key)
	}
}

// TestOnlyFirstRunBeginsTitle: a model writes a title in the first run of a thread that is no fork, if
// the agent has a model for titles.
func TestOnlyFirstRunBeginsTitle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		titleModel string
		thread     snapshot.Snapshot
		want       bool
	}{
		"first run":     {"p/small", snapshot.Snapshot{}, true},
		"no model":      {"", snapshot.Snapshot{}, false},
		"a second run":  {"p/small", snapshot.Snapshot{LastRun: snapshot.LastRun{Run: "r0"}}, false},
		"run of a fork": {"p/small", snapshot.Snapshot{RunHistory: snapshot.RunHistory{Origin: &stream.Origin{}}}, false},
	} {
		temporal := &startingTemporal{}
		d := &dispatch.Dispatcher{Temporal: temporal}
		agent := catalog.Published{Definition: &agents.Definition{Name: "a", TitleModel: tt.titleModel}}
		in := dispatch.RunInput(stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "t"}, ID: "r"}, agent, stream.Proposal{Seq: 1})
		if _, _, err := d.StartOrOffer(t.Context(), in, dispatch.OfferTerms{}, &tt.thread); err != nil {
			t.Fatal(err)
		}
		if temporal.input.BeginsTitle != tt.want {
			t.Errorf("%s: begins a title = %v, want %v", name, temporal.input.BeginsTitle, tt.want)
		}
	}
}

// closingTemporal is a Temporal client whose execution accepts an update and continues as new before it
// answers. The next execution answers.
type closingTemporal struct {
	client.Client
	updates int
}

func (c *closingTemporal) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if c.updates++; c.updates == 1 {
		return closedHandle{}, nil
	}
	return queuedHandle{}, nil
}

type closedHandle struct{ client.WorkflowUpdateHandle }

func (closedHandle) Get(context.Context, any) error {
	return temporal.NewNonRetryableApplicationError("closed", "AcceptedUpdateCompletedWorkflow", nil)
}

// TestUpdateOfContinuingExecution: an update that an execution has accepted right before it continued as
// new is sent to the next execution, unless the caller has named the execution.
func TestUpdateOfContinuingExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for execution, want := range map[string]bool{"": true, "e1": false} {
			d := &dispatch.Dispatcher{Temporal: &closingTemporal{}}
			var result runs.SubmitResult
			err := d.Update(t.Context(), stream.Thread{Tenant: "t", ID: "t"}, execution, runs.UpdateSubmit, runs.SubmitRequest{}, &result)
			if result.Queued != want || (err == nil) != want {
				t.Errorf("update of execution %q = %+v, %v, want an answer = %v", execution, result, err, want)
			}
		}
	})
}
