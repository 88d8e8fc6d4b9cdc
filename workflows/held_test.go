package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/runs"
)

// heldFixture is a fixture whose run is held for interrupts in its first turn, and succeeds in the
// second. It records the announced interrupts and the tool calls.
type heldFixture struct {
	*fixture
	announced     []runs.AnnounceInterrupts
	calls         []runs.ToolCall
	storedResults []runs.ToolResult
	failStore     func(attempt int32) error // fails the activity that stores a result in the log
}

// setupHeld returns a heldFixture whose activities succeed.
func setupHeld(t *testing.T) *heldFixture {
	t.Helper()
	fixture := &heldFixture{fixture: setup(t), failStore: func(int32) error { return nil }}
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return answerWithInterrupts(10), nil
		}
		return modelAnswer(30), nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		fixture.mu.Lock()
		defer fixture.mu.Unlock()
		fixture.calls = append(fixture.calls, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: 20}, nil
	}
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AnnounceInterrupts) (uint64, error) {
		fixture.announced = append(fixture.announced, in)
		return 15, nil
	}, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	fixture.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.StoreResult, result runs.ToolResult) (runs.Decision, error) {
		if err := fixture.failStore(activity.GetInfo(ctx).Attempt); err != nil {
			return runs.Decision{}, err
		}
		fixture.storedResults = append(fixture.storedResults, result)
		return runs.Decision{CallID: result.CallID, Kind: runs.DecisionToolResult, Digest: "kept", Proposal: 80}, nil
	}, activity.RegisterOptions{Name: runs.ActivityStoreToolResult})
	return fixture
}

// heldInput returns the input of a held run.
func heldInput() runs.Input {
	in := input
	in.Hold = true
	return in
}

// decide sends decisions to the workflow after some time.
func (f *heldFixture) decide(after time.Duration, decisions ...runs.Decision) {
	f.env.RegisterDelayedCallback(func() {
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, make(chan any, 1))
	}, after)
}

// madeCalls returns the sorted IDs of the tool calls.
func (f *heldFixture) madeCalls() (ids []string) {
	for _, c := range f.calls {
		ids = append(ids, c.CallID)
	}
	slices.Sort(ids)
	return ids
}

var clientResult = runs.Decision{CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Proposal: 71}

// TestHeldRunContinues: a held run continues with its turn after the last decision, and then with
// the next turn.
func TestHeldRunContinues(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.decide(time.Minute, approvalOf("ask"))
	fixture.decide(2*time.Minute, clientResult)
	result, finish := fixture.run(heldInput())
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if finish.Interrupts != nil {
		t.Errorf("end of the run: Interrupts = %+v, want nil", finish.Interrupts)
	}
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	mustEqual(t, "number of announced interrupts", len(fixture.announced), 1)
	wantEqual(t, "ID of the announcement", fixture.announced[0].ID, "1/hold")
	wantEqual(t, "step that the announcement closes", fixture.announced[0].Closes, "tools")
	wantEqual(t, "number of announced interrupts", len(fixture.announced[0].Interrupts.Items), 2)
	mustEqual(t, "calls", fixture.madeCalls(), []string{"ask", "client", "now"})
	wantEqual(t, "call after its decision: open", fixture.calls[1].TurnStepID, "1/held")
	wantEqual(t, "call after its decision: record before it", fixture.calls[1].After, 15)
	wantEqual(t, "call after its decision: closed step", fixture.calls[1].Closes, "")
	if fixture.calls[1].Decision == nil {
		t.Fatal("call after its decision: Decision = nil, want a value")
	}
	if fixture.calls[1].Beginning != nil {
		t.Errorf("call after its decision: Opens = %+v, want nil", fixture.calls[1].Beginning)
	}
	wantEqual(t, "model call of the next turn: ID", fixture.modelCalls[1].ID, "2/model")
	wantEqual(t, "model call of the next turn: closed step", fixture.modelCalls[1].Closes, "tools")
	wantEqual(t, "model call of the next turn: record before it", fixture.modelCalls[1].After, 16)
}

// listOpenCalls asks a run, after some time, for its open calls. It submits without an offer, which
// the run refuses.
func (f *fixture) listOpenCalls(after time.Duration, open *[][]string) {
	f.env.RegisterDelayedCallback(func() {
		f.env.UpdateWorkflow(runs.UpdateSubmit, after.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() { f.t.Error("an offer without a run was accepted, want busy") },
			OnReject: func(err error) {
				var busy *temporal.ApplicationError
				var active runs.ActiveRun
				if !errors.As(err, &busy) || busy.Type() != runs.ErrorBusy || busy.Details(&active) != nil {
					f.t.Errorf("refusal: got %v, want busy", err)
				}
				*open = append(*open, active.Waiting)
			},
			OnComplete: func(any, error) {},
		}, runs.SubmitRequest{})
	}, after)
}

// TestHeldRunListsOpenCalls: a held run does not list calls that have a result.
func TestHeldRunListsOpenCalls(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	var open [][]string
	fixture.listOpenCalls(time.Minute, &open)
	fixture.decide(2*time.Minute, clientResult)
	fixture.listOpenCalls(3*time.Minute, &open)
	fixture.decide(4*time.Minute, approvalOf("ask"))
	fixture.run(heldInput())
	if want := [][]string{{"ask", "client"}, {"ask"}}; !slices.EqualFunc(open, want, slices.Equal) {
		t.Errorf("open calls: got %q, want %q", open, want)
	}
}

// TestHeldRunDecidedEarly: decisions may arrive before the other calls of the turn end. The run
// then announces no interrupt.
func TestHeldRunDecidedEarly(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	slow := fixture.tool
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.CallID == "now" {
			answers := make(chan any, 1)
			fixture.env.RegisterDelayedCallback(func() {
				fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), clientResult}}, answers)
			}, 0)
			<-answers
		}
		return slow(in)
	}
	result, _ := fixture.run(heldInput())
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of announcements", len(fixture.announced), 0)
	wantEqual(t, "number of made calls", len(fixture.madeCalls()), 3)
}

// TestHeldRunIsParked: time spent waiting does not count against the deadline. A held run that
// waits long is parked, accepts decisions there, and continues in the same turn.
func TestHeldRunIsParked(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.decide(time.Minute, clientResult)
	began := fixture.env.Now()
	fixture.env.ExecuteWorkflow(runs.TypeRun, heldInput())
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	p := parked.Run.Progress
	took := fixture.env.Now().Sub(began)
	if took < runs.DefaultParkAfter {
		t.Errorf("parked after %s, want at least %s", took, runs.DefaultParkAfter)
	}
	if parked.Interrupts != nil {
		t.Errorf("parked after %s: interrupts = %+v, want nil", took, parked.Interrupts)
	}
	if p.Held == nil {
		t.Fatalf("parked after %s: held = nil, want a value", took)
	}
	mustEqual(t, fmt.Sprintf("parked after %s: turn", took), p.Turn, 1)
	mustEqual(t, fmt.Sprintf("parked after %s: number of ends", took), len(fixture.finished), 0)
	const weekend = 20 * time.Hour
	later := setupHeld(t)
	later.env.SetStartTime(fixture.env.Now())
	later.decide(weekend, approvalOf("ask"))
	later.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	decodeContinuation(t, later.env.GetWorkflowError(), runs.TypeRun, &next)
	longer := next.Progress.Deadline.Sub(p.Deadline)
	if longer < weekend {
		t.Errorf("the deadline moved by %v, want at least %v", longer, weekend)
	}
	nextFixture := setupHeld(t)
	result, _ := nextFixture.run(next)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "calls of the next execution", nextFixture.madeCalls(), []string{"ask", "client"})
	mustEqual(t, "number of announcements", len(nextFixture.announced), 0)
	wantEqual(t, "turn of the model call", nextFixture.modelCalls[0].Turn, 2)
}

// TestHeldRunIsCancelled: a cancel ends a held run and its interrupts, parked or not.
func TestHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	f := setupHeld(t)
	answers := make(chan any, 1)
	f.env.RegisterDelayedCallback(func() { f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) }, time.Minute)
	result, finish := f.run(heldInput())
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	if finish.Interrupts != nil {
		t.Errorf("end of the run: Interrupts = %+v, want nil", finish.Interrupts)
	}
	wantEqual(t, "number of made calls", len(f.madeCalls()), 1)
	last := f.notifications[len(f.notifications)-1]
	wantEqual(t, "last notification: event", last.Event, runs.EventDecided)
	mustEqual(t, "last notification: number of calls", len(last.Items), 1)
	wantEqual(t, "kind of the notified decision", last.Items[0].Decision.Kind, runs.DecisionCancel)
	parking := setupHeld(t)
	parking.env.ExecuteWorkflow(runs.TypeRun, heldInput())
	var parked runs.ParkedInput
	decodeContinuation(t, parking.env.GetWorkflowError(), runs.TypeParked, &parked)
	next := runParked(t, parked, time.Hour, func(execution *fixture) {
		execution.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
		execution.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{clientResult}}, answers)
	})
	nextFixture := setupHeld(t)
	result, _ = nextFixture.run(next)
	wantEqual(t, "parked run: outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "number of calls after the cancel", len(nextFixture.madeCalls())+len(nextFixture.modelCalls), 0)
}

// TestDecisionsOfCancelledRunAreRecorded: when a run is cancelled, its acknowledged decisions
// are written to the log and no tool is called. The same holds for a call that is cancelled before
// a worker takes it.
func TestDecisionsOfCancelledRunAreRecorded(t *testing.T) {
	t.Parallel()
	cancels := func(fixture *heldFixture) {
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
	}
	for name, cancel := range map[string]func(fixture *heldFixture){
		"while it waits for more": func(fixture *heldFixture) {
			fixture.decide(time.Minute, approvalOf("ask"))
			fixture.env.RegisterDelayedCallback(func() { cancels(fixture) }, 2*time.Minute)
		},
		"before a worker takes the call": func(fixture *heldFixture) {
			fixture.decide(time.Minute, clientResult)
			fixture.decide(2*time.Minute, approvalOf("ask"))
			call := fixture.tool
			fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
				if in.Decision == nil || in.Cancelled {
					return call(in)
				}
				cancelled := make(chan struct{})
				fixture.env.RegisterDelayedCallback(func() { cancels(fixture); close(cancelled) }, 0)
				<-cancelled
				return runs.ToolAnswer{}, temporal.NewCanceledError()
			}
		},
	} {
		fixture := setupHeld(t)
		cancel(fixture)
		result, finish := fixture.run(heldInput())
		wantEqual(t, name+": outcome", result.Outcome, runs.OutcomeCancelled)
		wantEqual(t, name+": number of unfinished lanes", len(finish.Unfinished), 0)
		for _, c := range fixture.calls {
			if c.CallID != "now" && (!c.Cancelled || !c.Compensates || c.Decision == nil) {
				t.Errorf("%s: call %s: got Cancelled %t, Compensates %t, decision %+v, want a cancelled call with its decision", name, c.CallID, c.Cancelled, c.Compensates, c.Decision)
			}
		}
		if want := map[string]int{"while it waits for more": 2, "before a worker takes the call": 3}[name]; len(fixture.calls) != want {
			t.Errorf("%s: calls: got %q, want %d", name, fixture.madeCalls(), want)
		}
	}
}

// TestHeldRunFailsOnExpiry: with `onExpiry: fail` a held run fails when its approval
// expires.
func TestHeldRunFailsOnExpiry(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(10, "ask")
		a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Expires: time.Minute, OnExpiry: runs.OnExpiryFail}, 1
		return a, nil
	}
	result, _ := fixture.run(heldInput())
	wantEqual(t, "code", result.Code, runs.CodeApprovalExpired)
	wantEqual(t, "number of made calls", len(fixture.madeCalls()), 0)
}

// TestToolResultSignals: a result that arrives as a signal is stored in the log and becomes a
// decision, even if the log is away for a while. A result of an unknown call, of an approval, a
// duplicate or an invalid one changes nothing.
func TestToolResultSignals(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.failStore = func(attempt int32) error {
		switch {
		case len(fixture.storedResults) == 0 && attempt < 3:
			return errors.New("the log is away")
		case len(fixture.storedResults) == 1:
			return temporal.NewNonRetryableApplicationError("no content", "invalid_tool_result", nil)
		}
		return nil
	}
	signal := func(call string) {
		fixture.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: call, Content: []byte(`"blue"`)})
	}
	fixture.env.RegisterDelayedCallback(func() {
		fixture.env.SignalWorkflow(runs.SignalToolResult, 7)
		for _, call := range []string{"unknown", "ask", "now", "client", "client"} {
			signal(call)
		}
	}, time.Minute)
	fixture.decide(time.Hour, approvalOf("ask"))
	in := heldInput()
	in.ParkAfter = 2 * time.Hour
	result, _ := fixture.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of stored results", len(fixture.storedResults), 1)
	wantEqual(t, "call of the stored result", fixture.storedResults[0].CallID, "client")
	wantEqual(t, "content of the stored result", string(fixture.storedResults[0].Content), `"blue"`)
	for _, c := range fixture.calls {
		if c.CallID == "client" && (c.Decision.Proposal != 80 || c.Decision.Digest != "kept") {
			t.Errorf("decision of the call: got record %d and digest %q, want 80 and %q", c.Decision.Proposal, c.Decision.Digest, "kept")
		}
	}
}

// TestToolResultIsStoredBeforeParking: a run is not parked before the results that arrived are
// in the log.
func TestToolResultIsStoredBeforeParking(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.failStore = func(attempt int32) error {
		if attempt < 5 { // for longer than the run waits here
			return errors.New("the log is away")
		}
		return nil
	}
	in := heldInput()
	in.ParkAfter = time.Minute
	fixture.env.RegisterDelayedCallback(func() {
		fixture.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: "client", Content: []byte(`"blue"`)})
	}, 59*time.Second)
	fixture.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	if parked.Run.Progress.Held.Items[1].Decision == nil {
		t.Fatal("decision of the parked call = nil, want a value")
	}
	wantEqual(t, "decision of the parked call: input", parked.Run.Progress.Held.Items[1].Decision.Proposal, 80)
}

// TestStepsAwaitUpdates: a decided call is not made within the workflow task that takes the decision. If
// that is lost, a cancel may come before the decision: then the interrupt is cancelled, and the log must
// not have the call. Steps in later tasks do not wait.
func TestStepsAwaitUpdates(t *testing.T) {
	t.Parallel()
	f := setupHeld(t)
	within := map[string]bool{}
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		f.mu.Lock()
		within[in.CallID] = activity.GetInfo(ctx).IsLocalActivity
		f.mu.Unlock()
		return f.tool(in)
	}, activity.RegisterOptions{Name: runs.ActivityCallTool, DisableAlreadyRegisteredCheck: true})
	f.decide(time.Second, approvalOf("ask"))
	f.decide(time.Minute, clientResult)
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn > 1 {
			within["model"] = activity.GetInfo(ctx).IsLocalActivity
		}
		return f.model(in)
	}, activity.RegisterOptions{Name: runs.ActivityCallModel, DisableAlreadyRegisteredCheck: true})
	nextTask := f.tool
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.CallID == "client" {
			f.env.RegisterDelayedCallback(func() { f.env.SetCurrentHistoryLength(20) }, 0)
		}
		return nextTask(in)
	}
	f.run(heldInput())
	if want := map[string]bool{"now": true, "ask": false, "client": false, "model": true}; !maps.Equal(within, want) {
		t.Errorf("steps within workflow tasks = %v, want %v", within, want)
	}
}
