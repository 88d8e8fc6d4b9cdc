package api_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// payloads encodes a value as the arguments of a workflow.
func payloads(t *testing.T, v any) *commonpb.Payloads {
	t.Helper()
	p, err := runs.DataConverter().ToPayloads(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startedEvent returns the first event of the history of a workflow that was started with a run.
func startedEvent(t *testing.T, in runs.Input) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads(t, in)},
	}}
}

// acceptedOfferEvent returns the event of a workflow that has accepted the offer of a run.
func acceptedOfferEvent(t *testing.T, in runs.Input) *historypb.HistoryEvent {
	t.Helper()
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
		WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
			AcceptedRequest: &updatepb.Request{Input: &updatepb.Input{
				Name: runs.UpdateSubmit, Args: payloads(t, runs.SubmitRequest{RunID: in.Run.ID, OnBusy: runs.OnBusyEnqueue, Offer: &in}),
			}},
		},
	}}
}

var terminated = func(string) (enums.WorkflowExecutionStatus, error) {
	return enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
}

// TestRunDiesBeforeFirstRecord: the API begins and ends a run whose workflow dies before its
// first record, however the workflow accepted it. The same input then shows that end.
func TestRunDiesBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	other := runs.Input{Run: runs.Ref{Tenant: "default", Thread: "t", ID: "other"}}
	for name, taken := range map[string]func(t *testing.T, in runs.Input) []*historypb.HistoryEvent{
		"its own": func(t *testing.T, in runs.Input) []*historypb.HistoryEvent {
			return []*historypb.HistoryEvent{startedEvent(t, in)}
		},
		"in a queue": func(t *testing.T, in runs.Input) []*historypb.HistoryEvent {
			host := other
			host.Queue = []runs.Input{other, in}
			return []*historypb.HistoryEvent{startedEvent(t, host)}
		},
		"in the queue of a run that is parked": func(t *testing.T, in runs.Input) []*historypb.HistoryEvent {
			host := other
			host.Queue = []runs.Input{in}
			started := startedEvent(t, in)
			a := started.GetWorkflowExecutionStartedEventAttributes()
			a.WorkflowType, a.Input = &commonpb.WorkflowType{Name: runs.TypeParked}, payloads(t, runs.ParkedInput{Run: host})
			return []*historypb.HistoryEvent{started}
		},
		"accepted": func(t *testing.T, in runs.Input) []*historypb.HistoryEvent {
			return []*historypb.HistoryEvent{startedEvent(t, other), acceptedOfferEvent(t, other), {}, acceptedOfferEvent(t, in)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := setup(t)
			node.temporal.status = terminated
			node.temporal.start = func(in runs.Input) error { node.temporal.history = taken(t, in); return nil }
			for range 2 {
				a := node.post(inputOf("r1", "hello"))
				wantEqual(t, "number of events", len(cursors(a.body)), 2)
				if !strings.Contains(a.body, `"type":"RUN_STARTED"`) {
					t.Errorf("body = %q, want text with %q", a.body, `"type":"RUN_STARTED"`)
				}
				if !strings.Contains(a.body, `"code":"workflow_terminated"`) {
					t.Errorf("body = %q, want text with %q", a.body, `"code":"workflow_terminated"`)
				}
			}
			if len(node.temporal.starts) != 1 {
				t.Errorf("starts: got %d, want 1", len(node.temporal.starts))
			}
			late := stream.Place{Run: streamRun(node.temporal.starts[0]), Lane: stream.LaneMain, Step: "1/model", Execution: "latest"}
			if _, err := node.log.OpenStep(node.ctx(), late, nil, &agui.RunStarted{ThreadID: "t", RunID: "r1"}); !errors.Is(err, stream.ErrOver) {
				t.Errorf("late opening: got %v, want ErrOver", err)
			}
		})
	}
}

// TestAwaitRunWithoutRecords: the API waits for a run that no workflow has accepted, or that
// may still begin, and shows it when it begins.
func TestAwaitRunWithoutRecords(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]func(string) (enums.WorkflowExecutionStatus, error){
		"its workflow runs": func(string) (enums.WorkflowExecutionStatus, error) {
			return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
		},
		"the thread continues as new": func(string) (enums.WorkflowExecutionStatus, error) {
			return enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil
		},
		"Temporal has nothing":     func(string) (enums.WorkflowExecutionStatus, error) { return 0, serviceerror.NewNotFound("no workflow") },
		"another run's has closed": terminated,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := setup(t)
			begin := make(chan runs.Input, 1)
			looked := make(chan struct{}, 100)
			var begun atomic.Bool // a run that has begun without a workflow would be ended
			node.temporal.status = func(execution string) (enums.WorkflowExecutionStatus, error) {
				if begun.Load() {
					return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
				}
				looked <- struct{}{}
				return status(execution)
			}
			node.temporal.start = func(in runs.Input) error {
				other := in
				other.Run.ID = "other"
				node.temporal.history = []*historypb.HistoryEvent{startedEvent(t, other)}
				begin <- in
				return nil
			}
			done := make(chan answer, 1)
			go func() { done <- node.post(inputOf("r1", "hello")) }()
			in := <-begin
			for range 2 { // at the second check the first has had its effect
				select {
				case <-looked:
				case a := <-done:
					t.Fatalf("the stream ended: %s", a.body)
				}
			}
			begun.Store(true)
			node.end(node.begin(in, "e1"))
			if a := <-done; !strings.Contains(a.body, `"RUN_FINISHED"`) {
				t.Errorf("events = %s, want text with RUN_FINISHED", a.body)
			}
		})
	}
}

// TestRecentRunIsNotChecked: the API does not check a run that was started a moment ago.
func TestRecentRunIsNotChecked(t *testing.T) {
	t.Parallel()
	node := setup(t)
	begun := time.Now()
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		if quiet := time.Since(begun); quiet < 60*time.Millisecond {
			t.Errorf("check after %s, want at least 60ms", quiet)
		}
		return terminated("")
	}
	node.temporal.start = func(in runs.Input) error {
		node.temporal.history = []*historypb.HistoryEvent{startedEvent(t, in)}
		return nil
	}
	node.post(inputOf("r1", "hello"))
}

// TestRunEndsDuringCheck: a run whose own end is written while the node checks its
// workflow is not reported as ended by the node.
func TestRunEndsDuringCheck(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	node := setup(t, func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		node.end(place) // after the check has found no end
		return enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
	}
	a := node.post(inputOf("r1", "hello"))
	if !strings.Contains(a.body, `"RUN_FINISHED"`) {
		t.Errorf("body = %q, want text with %q", a.body, `"RUN_FINISHED"`)
	}
	node.server.Drain()
	node.http.Close() // waits for its handlers
	if strings.Contains(logged.String(), "ended a run whose workflow was closed") {
		t.Errorf("log = %q, want no %q", logged.String(), "ended a run whose workflow was closed")
	}
}
