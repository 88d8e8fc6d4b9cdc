package workflows_test

import (
	"context"
	"errors"
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
	announced []runs.AnnounceInterrupts
	calls     []runs.ToolCall
	kept      []runs.ToolResult
	keep      func(attempt int32) error // fails the activity that stores a result in the log
}

func setupHeld(t *testing.T) *heldFixture {
	t.Helper()
	h := &heldFixture{fixture: setup(t), keep: func(int32) error { return nil }}
	h.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return asks(10), nil
		}
		return says(30), nil
	}
	h.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: 20}, nil
	}
	h.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AnnounceInterrupts) (uint64, error) {
		h.announced = append(h.announced, in)
		return 15, nil
	}, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	h.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.StoreResult, said runs.ToolResult) (runs.Decision, error) {
		if err := h.keep(activity.GetInfo(ctx).Attempt); err != nil {
			return runs.Decision{}, err
		}
		h.kept = append(h.kept, said)
		return runs.Decision{CallID: said.CallID, Kind: runs.DecisionToolResult, Digest: "kept", Input: 80}, nil
	}, activity.RegisterOptions{Name: runs.ActivityStoreResult})
	return h
}

func heldInput() runs.Input {
	in := input
	in.Hold = true
	return in
}

func (h *heldFixture) decide(after time.Duration, decisions ...runs.Decision) {
	h.env.RegisterDelayedCallback(func() {
		h.update(runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, make(chan any, 1))
	}, after)
}

func (h *heldFixture) made() (ids []string) {
	for _, c := range h.calls {
		ids = append(ids, c.CallID)
	}
	slices.Sort(ids)
	return ids
}

var clientResult = runs.Decision{CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Input: 71}

// TestAHeldRunContinues: a held run continues with its turn after the last decision, and then with
// the next turn.
func TestAHeldRunContinues(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.decide(time.Minute, approves("ask"))
	h.decide(2*time.Minute, clientResult)
	result, finish := h.run(heldInput())
	if result.Outcome != runs.OutcomeSuccess || finish.Interrupts != nil || len(h.models) != 2 {
		t.Errorf("got %+v and the end %+v after %d turns", result, finish, len(h.models))
	}
	if len(h.announced) != 1 || h.announced[0].ID != "1/hold" || h.announced[0].Closes != "tools" || len(h.announced[0].Interrupts.Items) != 2 {
		t.Errorf("announced interrupts: got %+v", h.announced)
	}
	if !slices.Equal(h.made(), []string{"ask", "client", "now"}) {
		t.Fatalf("calls: got %q", h.made())
	}
	if c := h.calls[1]; c.Open != "1/held" || c.After != 15 || c.Closes != "" || c.Decision == nil || c.Opens != nil {
		t.Errorf("call after its decision: got %+v", c)
	}
	if m := h.models[1]; m.ID != "2/model" || m.Closes != "tools" || m.After != 16 {
		t.Errorf("model call of the next turn: got %+v", m)
	}
}

// look asks a run, after some time, for its open calls. It submits without an offer, which the run
// refuses.
func (w *fixture) look(after time.Duration, open *[][]string) {
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(runs.UpdateSubmit, after.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() { w.t.Error("an offer without a run was accepted") },
			OnReject: func(err error) {
				var busy *temporal.ApplicationError
				var active runs.ActiveRun
				if !errors.As(err, &busy) || busy.Type() != runs.ErrorBusy || busy.Details(&active) != nil {
					w.t.Errorf("refusal: got %v, want busy", err)
				}
				*open = append(*open, active.Waiting)
			},
			OnComplete: func(any, error) {},
		}, runs.SubmitRequest{})
	}, after)
}

// TestAHeldRunListsItsOpenCalls: a held run does not list calls that have a result.
func TestAHeldRunListsItsOpenCalls(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	var open [][]string
	h.look(time.Minute, &open)
	h.decide(2*time.Minute, clientResult)
	h.look(3*time.Minute, &open)
	h.decide(4*time.Minute, approves("ask"))
	h.run(heldInput())
	if want := [][]string{{"ask", "client"}, {"ask"}}; !slices.EqualFunc(open, want, slices.Equal) {
		t.Errorf("open calls: got %q, want %q", open, want)
	}
}

// TestAHeldRunIsAnsweredEarly: decisions may arrive before the other calls of the turn end. The run
// then announces no interrupt.
func TestAHeldRunIsAnsweredEarly(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	slow := h.tool
	h.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.CallID == "now" {
			answers := make(chan any, 1)
			h.env.RegisterDelayedCallback(func() {
				h.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approves("ask"), clientResult}}, answers)
			}, 0)
			<-answers
		}
		return slow(in)
	}
	if result, _ := h.run(heldInput()); result.Outcome != runs.OutcomeSuccess || len(h.announced) != 0 || len(h.made()) != 3 {
		t.Errorf("got %+v after %q; announced interrupts: %+v", result, h.made(), h.announced)
	}
}

// TestAHeldRunIsParked: time spent waiting does not count against the deadline. A held run that
// waits long is parked, accepts decisions there, and continues in the same turn.
func TestAHeldRunIsParked(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.decide(time.Minute, clientResult)
	began := h.env.Now()
	h.env.ExecuteWorkflow(runs.TypeRun, heldInput())
	var parked runs.ParkedInput
	continuedAs(t, h.env.GetWorkflowError(), runs.TypeParked, &parked)
	p := parked.Run.Progress
	if took := h.env.Now().Sub(began); took < runs.DefaultParkAfter || parked.Interrupts != nil || p.Held == nil || p.Turn != 1 || len(h.finished) != 0 {
		t.Fatalf("parked after %s: got %+v", took, parked)
	}
	const weekend = 20 * time.Hour
	later := setupHeld(t)
	later.env.SetStartTime(h.env.Now())
	later.decide(weekend, approves("ask"))
	later.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	continuedAs(t, later.env.GetWorkflowError(), runs.TypeRun, &next)
	if longer := next.Progress.Deadline.Sub(p.Deadline); longer < weekend {
		t.Errorf("the deadline moved by %s", longer)
	}
	again := setupHeld(t)
	result, _ := again.run(next)
	if result.Outcome != runs.OutcomeSuccess || !slices.Equal(again.made(), []string{"ask", "client"}) || len(again.announced) != 0 || again.models[0].Turn != 2 {
		t.Errorf("got %+v after the calls %q and the model calls %+v", result, again.made(), again.models)
	}
}

// TestAHeldRunIsCancelled: a cancel ends a held run and its interrupts, parked or not.
func TestAHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	answers := make(chan any, 1)
	h.env.RegisterDelayedCallback(func() { h.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) }, time.Minute)
	if result, finish := h.run(heldInput()); result.Outcome != runs.OutcomeCancelled || finish.Interrupts != nil || len(h.made()) != 1 {
		t.Errorf("got %+v and the end %+v after %q", result, finish, h.made())
	}
	last := h.notices[len(h.notices)-1]
	if last.Event != runs.EventDecided || len(last.Calls) != 1 || last.Calls[0].Decision.Kind != runs.DecisionCancel {
		t.Errorf("last notification: got %+v", last)
	}
	p := setupHeld(t)
	p.env.ExecuteWorkflow(runs.TypeRun, heldInput())
	var parked runs.ParkedInput
	continuedAs(t, p.env.GetWorkflowError(), runs.TypeParked, &parked)
	next := unpark(t, parked, time.Hour, func(w *fixture) {
		w.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
		w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{clientResult}}, answers)
	})
	again := setupHeld(t)
	if result, _ := again.run(next); result.Outcome != runs.OutcomeCancelled || len(again.made())+len(again.models) != 0 {
		t.Errorf("parked run: got %+v after %q", result, again.made())
	}
}

// TestDecisionsOfACancelledRunAreWrittenDown: when a run is cancelled, its acknowledged decisions
// are written to the log and no tool is called. The same holds for a call that is cancelled before
// a worker takes it.
func TestDecisionsOfACancelledRunAreWrittenDown(t *testing.T) {
	t.Parallel()
	cancels := func(h *heldFixture) { h.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) }
	for name, play := range map[string]func(h *heldFixture){
		"while it waits for more": func(h *heldFixture) {
			h.decide(time.Minute, approves("ask"))
			h.env.RegisterDelayedCallback(func() { cancels(h) }, 2*time.Minute)
		},
		"before a worker takes the call": func(h *heldFixture) {
			h.decide(time.Minute, clientResult)
			h.decide(2*time.Minute, approves("ask"))
			call := h.tool
			h.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
				if in.Decision == nil || in.Cancelled {
					return call(in)
				}
				cancelled := make(chan struct{})
				h.env.RegisterDelayedCallback(func() { cancels(h); close(cancelled) }, 0)
				<-cancelled
				return runs.ToolAnswer{}, temporal.NewCanceledError()
			}
		},
	} {
		h := setupHeld(t)
		play(h)
		result, finish := h.run(heldInput())
		if result.Outcome != runs.OutcomeCancelled || len(finish.Unfinished) > 0 {
			t.Errorf("%s: got %+v and the end %+v", name, result, finish)
		}
		for _, c := range h.calls {
			if c.CallID != "now" && (!c.Cancelled || !c.Compensates || c.Decision == nil) {
				t.Errorf("%s: call %s: got %+v", name, c.CallID, c)
			}
		}
		if want := map[string]int{"while it waits for more": 2, "before a worker takes the call": 3}[name]; len(h.calls) != want {
			t.Errorf("%s: calls: got %q, want %d", name, h.made(), want)
		}
	}
}

// TestAHeldRunFailsOnExpiry: with `onExpiry: fail` a held run fails when its approval
// expires.
func TestAHeldRunFailsOnExpiry(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(10, "ask")
		a.Calls[0].Approval, a.WaitCount = &runs.Approval{Args: "args", Expires: time.Minute, OnExpiry: runs.OnExpiryFail}, 1
		return a, nil
	}
	if result, _ := h.run(heldInput()); result.Code != runs.CodeApprovalExpired || len(h.made()) != 0 {
		t.Errorf("got %+v after %q", result, h.made())
	}
}

// TestResultsBySignal: a result that arrives as a signal is stored in the log and becomes a
// decision, even if the log is away for a while. A result of an unknown call, of an approval, a
// duplicate or an invalid one changes nothing.
func TestResultsBySignal(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.keep = func(attempt int32) error {
		switch {
		case len(h.kept) == 0 && attempt < 3:
			return errors.New("the log is away")
		case len(h.kept) == 1:
			return temporal.NewNonRetryableApplicationError("no content", "invalid_tool_result", nil)
		}
		return nil
	}
	signal := func(call string) {
		h.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: call, Content: []byte(`"blue"`)})
	}
	h.env.RegisterDelayedCallback(func() {
		h.env.SignalWorkflow(runs.SignalToolResult, 7)
		for _, call := range []string{"unknown", "ask", "now", "client", "client"} {
			signal(call)
		}
	}, time.Minute)
	h.decide(time.Hour, approves("ask"))
	in := heldInput()
	in.ParkAfter = 2 * time.Hour
	if result, _ := h.run(in); result.Outcome != runs.OutcomeSuccess {
		t.Errorf("%+v", result)
	}
	if len(h.kept) != 1 || h.kept[0].CallID != "client" || string(h.kept[0].Content) != `"blue"` {
		t.Errorf("stored results: got %+v", h.kept)
	}
	for _, c := range h.calls {
		if c.CallID == "client" && (c.Decision.Input != 80 || c.Decision.Digest != "kept") {
			t.Errorf("decision of the call: got %+v", c.Decision)
		}
	}
}

// TestAResultIsNotLostWhenItsRunIsParked: a run is not parked before the results that arrived are
// in the log.
func TestAResultIsNotLostWhenItsRunIsParked(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.keep = func(attempt int32) error {
		if attempt < 5 { // for longer than the run waits here
			return errors.New("the log is away")
		}
		return nil
	}
	in := heldInput()
	in.ParkAfter = time.Minute
	h.env.RegisterDelayedCallback(func() {
		h.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: "client", Content: []byte(`"blue"`)})
	}, 59*time.Second)
	h.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	continuedAs(t, h.env.GetWorkflowError(), runs.TypeParked, &parked)
	if d := parked.Run.Progress.Held.Items[1].Decision; d == nil || d.Input != 80 {
		t.Errorf("decision of the parked call: got %+v", d)
	}
}
