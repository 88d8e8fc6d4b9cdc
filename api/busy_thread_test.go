package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// inputWithProps returns the input with Perdure's forwarded properties.
func inputWithProps(in agui.RunAgentInput, props string) agui.RunAgentInput {
	in.ForwardedProps = json.RawMessage(`{"perdure":` + props + `}`)
	return in
}

// TestQueuedRun: a queued run is accepted at once and shown when its turn comes. The run
// that it interrupts is cancelled in the log and in Temporal.
func TestQueuedRun(t *testing.T) {
	t.Parallel()
	for onBusy, interrupted := range map[runs.OnBusy]string{runs.OnBusyEnqueue: "", runs.OnBusyInterrupt: "r1"} {
		node := setup(t)
		var active stream.Place
		node.temporal.start = func(in runs.Input) error {
			if in.Run.ID == "r1" {
				active = node.begin(in, "e1")
				node.end(active)
				return nil
			}
			return alreadyStarted("e2") // the execution of a run that is not in the log yet
		}
		node.post(inputOf("r1", "hello"))
		node.temporal.submit = func(_ string, in runs.SubmitRequest) (runs.SubmitResult, error) {
			if in.OnBusy != onBusy || in.Offer.Run.ID != "r2" || in.Offer.Token != "r2" || in.Offer.Digest != in.Digest || in.Offer.Agent != "a" {
				t.Errorf("submission: got %+v with the offer %+v, want %s and the offer of r2", in, in.Offer, onBusy)
			}
			node.end(node.begin(*in.Offer, "e2"))
			return runs.SubmitResult{Queued: true, Interrupted: interrupted}, nil
		}
		a := node.post(inputWithProps(inputOf("r2", "me too"), `{"onBusy":"`+string(onBusy)+`"}`))
		a.wantStatus(t, fmt.Sprintf("%s: status", onBusy), http.StatusOK)
		if !strings.Contains(a.body, `"RUN_FINISHED"`) {
			t.Errorf("%s: body = %q, want text with %q", onBusy, a.body, `"RUN_FINISHED"`)
		}
		wanted, err := node.log.CancelRequested(node.ctx(), active.Run)
		if err != nil {
			t.Fatalf("%s: %v", onBusy, err)
		}
		wantEqual(t, fmt.Sprintf("%s: cancel requested", onBusy), wanted, interrupted != "")
	}
}

func TestBusyRefusals(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e1") }
	node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, temporal.NewApplicationError("full", runs.ErrorQueueFull)
	}
	if a := node.post(inputWithProps(inputOf("r2", "me too"), `{"onBusy":"enqueue"}`)); a.status != http.StatusTooManyRequests || a.problem.Code != "queue_full" {
		t.Errorf("run for a full queue: got %d %s, want %d queue_full", a.status, a.body, http.StatusTooManyRequests)
	}
	for props, pointer := range map[string]string{
		`{"onBusy":"hope"}`: "/forwardedProps/perdure/onBusy", `{"onBusy":1}`: "/forwardedProps/perdure/onBusy", `[]`: "/forwardedProps/perdure",
		`{"history":"all"}`: "/forwardedProps/perdure/history", `{"cancelOnDisconnect":"yes"}`: "/forwardedProps/perdure/cancelOnDisconnect",
	} {
		if a := node.post(inputWithProps(inputOf("r3", "?"), props)); a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("%s: got %d %s, want %d with the pointer %s", props, a.status, a.body, http.StatusBadRequest, pointer)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	node := setup(t)
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r1"}
	if _, err := node.log.ProposeFirstInput(node.ctx(), run, [32]byte{1}, &stream.Input{}); err != nil {
		t.Fatal(err)
	}
	var updates []string
	node.temporal.pause = func(update string) error { updates = append(updates, update); return nil }
	for _, path := range []string{"pause", "resume"} {
		if a := node.do(http.MethodPost, "/v1/threads/t/"+path, ""); a.status != http.StatusNoContent {
			t.Errorf("%s: status = %v, want %v; body: %s", path, a.status, http.StatusNoContent, a.body)
		}
	}
	if strings.Join(updates, " ") != "pause resume" {
		t.Errorf("updates of the workflow: got %v, want pause and resume", updates)
	}
	for _, err := range []error{serviceerror.NewNotFound("closed"), temporal.NewApplicationError("over", runs.ErrorNotActive)} {
		node.temporal.pause = func(string) error { return err }
		if a := node.do(http.MethodPost, "/v1/threads/t/pause", ""); a.status != http.StatusConflict || a.problem.Code != "not_active" {
			t.Errorf("pause without an active run: got %d %s, want %d not_active", a.status, a.body, http.StatusConflict)
		}
	}
}

// TestCancelOnDisconnect: an input with cancelOnDisconnect is cancelled when its client
// disconnects. Other inputs are not.
func TestCancelOnDisconnect(t *testing.T) {
	t.Parallel()
	node := setup(t)
	cancelled := make(chan string, 2)
	node.temporal.cancel = func(run string) error { cancelled <- run; return nil }
	node.temporal.start = func(in runs.Input) error { node.begin(in, "e-"+in.Run.ID); return nil }
	leave := func(in agui.RunAgentInput) {
		ctx, hangUp := context.WithCancel(node.ctx())
		defer hangUp()
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, node.http.URL+"/v1/agents/a/runs", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := node.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	stays := inputOf("r1", "hello")
	stays.ThreadID = "t1"
	leave(stays)
	leave(inputWithProps(inputOf("r2", "hello"), `{"cancelOnDisconnect":true}`))
	if run := <-cancelled; run != "r2" {
		t.Errorf("cancelled run: got %s, want r2", run)
	}
	in := inputWithProps(inputOf("r3", "hello"), `{"cancelOnDisconnect":true}`)
	in.ThreadID = "t3"
	socket := node.dial()
	socket.send(map[string]any{"type": "run", "id": "1", "agent": "a", "input": in})
	for socket.next().Type != "event" {
	}
	socket.disconnect()
	if run := <-cancelled; run != "r3" {
		t.Errorf("cancelled run: got %s, want r3", run)
	}
}

// TestContinuedRunIsFollowed: a run that continued as new is checked in the thread's current
// execution.
func TestContinuedRunIsFollowed(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.begin(in, "e1"); return nil }
	looks := 0
	node.temporal.status = func(execution string) (enums.WorkflowExecutionStatus, error) {
		if execution == "e1" {
			return enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil
		}
		if looks++; looks < 3 {
			return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
		}
		return enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
	}
	a := node.post(inputOf("r1", "hello"))
	if !strings.Contains(a.body, `"code":"workflow_terminated"`) {
		t.Errorf("after %d checks: body = %q, want text with %q", looks, a.body, `"code":"workflow_terminated"`)
	}
	wantEqual(t, "number of checks of the run", looks, 3)
}

// TestSteer: a steering message is in the log, and accepted by the run's workflow, before the API
// answers.
func TestSteer(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.emitHalfMessages()
	node.startRun("r1")
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e-r1") }
	node.temporal.submit = busyWith("r1")
	var steered []runs.SteerRequest
	node.temporal.steer = func(in runs.SteerRequest) (runs.SteerResult, error) {
		steered = append(steered, in)
		return runs.SteerResult{Repeated: len(steered) == 2}, nil
	}
	const path, body = "/v1/threads/t/messages", `{"message":{"id":"s1","role":"user","content":"Wait!"}}`
	for i := range 2 {
		a := node.do(http.MethodPost, path, body)
		a.mustStatus(t, "status", http.StatusAccepted)
		mustEqual(t, "answer says that the message is a repeat", strings.Contains(a.body, `"repeated":true`), i == 1)
		if !strings.Contains(a.body, `"runId":"r1"`) {
			t.Errorf("body = %q, want text with %q", a.body, `"runId":"r1"`)
		}
		in, err := node.log.Input(node.ctx(), steered[i].Input)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "run of the steering update", steered[i].RunID, "r1")
		wantEqual(t, "steering update", steered[i], steered[0])
		wantEqual(t, "text of the steering message in the log", in.Accepted.Tail[0].Message.Content.Text(), "Wait!")
	}
	second := inputOf("r2", "Stop.")
	if a := node.post(inputWithProps(second, `{"onBusy":"steer"}`)); a.status != http.StatusAccepted || len(steered) != 3 {
		t.Errorf("run that steers: got %d %s and %d updates, want %d and 3 updates", a.status, a.body, len(steered), http.StatusAccepted)
	} else if in, err := node.log.Input(node.ctx(), steered[2].Input); err != nil || in.Accepted.Tail[0].Message.ID != "u-r2" {
		t.Errorf("input of the steering run: got %+v, %v, want the message u-r2", in, err)
	}
	// A message that the thread has is not sent again. One with other content is refused.
	edit := inputOf("r3", "other words")
	edit.Messages[0].ID = "u-r1"
	if a := node.post(inputWithProps(edit, `{"onBusy":"steer"}`)); a.status != http.StatusConflict || a.problem.Code != "busy" || a.problem.ActiveRun != "r1" || len(steered) != 3 {
		t.Errorf("run that edits: got %d %s, want %d busy with the active run r1 and no update", a.status, a.body, http.StatusConflict)
	}
	if a := node.do(http.MethodPost, path, `{"message":{"id":"u-r1","role":"user","content":"other words"}}`); a.status != http.StatusBadRequest || a.problem.Pointer != "/message/id" || len(steered) != 3 {
		t.Errorf("message with the ID of another: got %d %s, want %d and no update", a.status, a.body, http.StatusBadRequest)
	}
	if a := node.do(http.MethodPost, path, `{"message":{"id":"u-r1","role":"user","content":"hello"}}`); a.status != http.StatusAccepted {
		t.Errorf("message that the thread has: status = %v, want %v; body: %s", a.status, http.StatusAccepted, a.body)
	}
	for message, pointer := range map[string]string{
		``: "/message", `{}`: "/message", `{"message":{"id":"s1","role":"assistant","content":""}}`: "/message/role",
		`{"message":{"id":"","role":"user","content":"x"}}`: "/message/id", `{"message":{"id":"s1","role":"user"}}`: "/message/content",
	} {
		if a := node.do(http.MethodPost, path, message); a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("%s: got %d %s, want %d with the pointer %s", message, a.status, a.body, http.StatusBadRequest, pointer)
		}
	}
	for refusal, status := range map[string]int{runs.ErrorNotActive: 409, runs.ErrorTooMuchSteering: 429} {
		node.temporal.steer = func(runs.SteerRequest) (runs.SteerResult, error) {
			return runs.SteerResult{}, temporal.NewApplicationError("no", refusal)
		}
		if a := node.do(http.MethodPost, path, body); a.status != status {
			t.Errorf("%s: status = %v, want %v; body: %s", refusal, a.status, status, a.body)
		}
	}
	node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, serviceerror.NewNotFound("no workflow")
	}
	if a := node.do(http.MethodPost, "/v1/threads/unknown/messages", body); a.status != http.StatusNotFound || a.problem.Code != "unknown_thread" {
		t.Errorf("message to an unknown thread: got %d %s, want %d unknown_thread", a.status, a.body, http.StatusNotFound)
	}
}

// busyWith returns a workflow that refuses every submission as busy.
func busyWith(active string) func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
	return func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, temporal.NewApplicationError("busy", runs.ErrorBusy, runs.ActiveRun{RunID: active})
	}
}

// TestSteerBeforeFirstRecord: a run that has begun in Temporal and not yet in the log can be
// steered, because its workflow knows the run.
func TestSteerBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r0", "hello")) // the last run in the log
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e9") }
	node.temporal.submit = busyWith("r1")
	node.temporal.steer = func(in runs.SteerRequest) (runs.SteerResult, error) {
		if in.RunID != "r1" || in.Input == 0 {
			t.Errorf("steering update: got %+v, want the run r1 with an input", in)
		}
		return runs.SteerResult{}, nil
	}
	for what, a := range map[string]answer{
		"a run":     node.post(inputWithProps(inputOf("r2", "Stop."), `{"onBusy":"steer"}`)),
		"a message": node.do(http.MethodPost, "/v1/threads/t/messages", `{"message":{"id":"s1","role":"user","content":"Wait!"}}`),
	} {
		a.wantStatus(t, what+": status", http.StatusAccepted)
		if !strings.Contains(a.body, `"runId":"r1"`) {
			t.Errorf("%s: body = %q, want text with %q", what, a.body, `"runId":"r1"`)
		}
	}
	if a := node.post(inputOf("r3", "me too")); a.status != http.StatusConflict || a.problem.ActiveRun != "r1" {
		t.Errorf("run that does not steer: got %d %s, want %d with the active run r1", a.status, a.body, http.StatusConflict)
	}
}
