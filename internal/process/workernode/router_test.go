package workernode

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// refusingTemporal is a Temporal client that fails all updates.
type refusingTemporal struct {
	client.Client
	err error
}

func (r *refusingTemporal) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, r.err
}

// TestEventIsAttemptedAgain: an event does not pass a wait whose workflow has failed the decision: the
// wait may be open in the next execution. Only a thread without a workflow has no open waits.
func TestEventIsAttemptedAgain(t *testing.T) {
	t.Parallel()
	for want, failure := range map[bool]error{
		true:  temporal.NewNonRetryableApplicationError("refused", "UnprocessedUpdate", nil),
		false: serviceerror.NewNotFound("no workflow"),
	} {
		d := &dispatch.Dispatcher{Temporal: &refusingTemporal{err: failure}}
		_, isActive, err := decide(d, nil)(t.Context(), stream.Thread{Tenant: "t", ID: "t"}, runs.Decision{CallID: "c"})
		if isActive || errors.Is(err, failure) != want {
			t.Errorf("decision after %v = %v, %v, want an error = %v", failure, isActive, err, want)
		}
	}
}

// replayingTemporal is a Temporal client whose workflow knows no call before the third update.
type replayingTemporal struct {
	client.Client
	updates int
}

func (b *replayingTemporal) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	b.updates++
	return replayingHandle{isKnown: b.updates == 3}, nil
}

type replayingHandle struct {
	client.WorkflowUpdateHandle
	isKnown bool
}

func (h replayingHandle) Get(_ context.Context, answer any) error {
	result := runs.DecisionResult{Error: runs.ErrorUnknownCall}
	if h.isKnown {
		result.Error = ""
	}
	answer.(*runs.DecideResult).Results = []runs.DecisionResult{result}
	return nil
}

// TestEventDuringReplay: an event ends a wait that the log has, also if the workflow, after a crash, has not
// read it yet. A call that the log does not have either is unknown at once.
func TestEventDuringReplay(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	snapshots := snapshot.NewStore(l)
	thread := stream.Thread{Tenant: "t", ID: "t"}
	p := stream.Place{Run: stream.Run{Thread: thread, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	var err error
	if p.After, err = l.OpenStep(t.Context(), p, stream.Opening{RunID: "r", Execution: "e"}, &agui.RunStarted{ThreadID: "t", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	outcome := &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "int", Reason: "tool_call", ToolCallID: "c"}}}
	if _, _, err := l.Seal(t.Context(), p, &agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: outcome}); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]int{"c": 3, "other": 1} {
		temporal := &replayingTemporal{}
		result, isActive, err := decide(&dispatch.Dispatcher{Temporal: temporal}, snapshots)(t.Context(), thread, runs.Decision{CallID: call})
		if err != nil || !isActive || temporal.updates != want || (result.Error == "") != (call == "c") {
			t.Errorf("decision of the call %s: got %+v, %v, %v after %d updates, want %d", call, result, isActive, err, temporal.updates, want)
		}
	}
}

// TestEventAfterPublication: an event that is sent right after the publication of its trigger starts a run,
// also at a worker that has not received the publication yet.
func TestEventAfterPublication(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	worker, err := catalog.Open(t.Context(), streamtest.OpenOn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := catalog.Open(t.Context(), streamtest.OpenOn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	watches, err := worker.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watches.Stop)
	for i := range 100 {
		name := fmt.Sprint("paid", i)
		d := &agents.Definition{Name: fmt.Sprint("agent", i), Model: "openai/m", Triggers: []agents.Trigger{{Event: name, Input: "Handle it."}}}
		if _, err := publisher.Publish(t.Context(), d, false); err != nil {
			t.Fatal(err)
		}
		_, started, err := trigger(&startingTemporal{}, worker)(t.Context(), &events.Event{Tenant: "t", Content: events.Content{Type: name}}, 1)
		if started != 1 || err != nil {
			t.Fatalf("event %d has started %d runs, %v, want one", i, started, err)
		}
	}
}
