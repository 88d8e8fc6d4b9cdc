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

// heldFixture is a fixture whose run is held for questions in its first turn, and is done in the second.
// It notes what it told readers and which tool calls were made.
type heldFixture struct {
	*fixture
	told  []runs.AnnounceInterrupts
	calls []runs.ToolCall
	kept  []runs.ToolResult
	keep  func(attempt int32) error // fails to put a result into the log
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
		h.told = append(h.told, in)
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
		h.update(runs.UpdateDecide, runs.Decide{Decisions: decisions}, make(chan any, 1))
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

// A run that is held goes on with its turn when everything is answered, and then with the next.
func TestAHeldRunGoesOn(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.decide(time.Minute, approves("ask"))
	h.decide(2*time.Minute, clientResult)
	result, finish := h.run(heldInput())
	if result.Outcome != runs.OutcomeSuccess || finish.Interrupts != nil || len(h.models) != 2 {
		t.Errorf("%+v, finished with %+v after %d turns", result, finish, len(h.models))
	}
	if len(h.told) != 1 || h.told[0].ID != "1/hold" || h.told[0].Closes != "tools" || len(h.told[0].Interrupts.Calls) != 2 {
		t.Errorf("readers were told %+v", h.told)
	}
	if !slices.Equal(h.made(), []string{"ask", "client", "now"}) {
		t.Fatalf("the calls are %q", h.made())
	}
	if c := h.calls[1]; c.Open != "1/held" || c.After != 15 || c.Closes != "" || c.Decision == nil || c.Opens != nil {
		t.Errorf("a call that waited is made with %+v", c)
	}
	if m := h.models[1]; m.ID != "2/model" || m.Closes != "tools" || m.After != 16 {
		t.Errorf("the next turn begins with %+v", m)
	}
}

// look asks a run, after some time, what it still waits for: with an offer without a run, which is
// refused.
func (w *fixture) look(after time.Duration, open *[][]string) {
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(runs.UpdateSubmit, after.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() { w.t.Error("an offer without a run was accepted") },
			OnReject: func(err error) {
				var busy *temporal.ApplicationError
				var active runs.Active
				if !errors.As(err, &busy) || busy.Type() != runs.ErrorBusy || busy.Details(&active) != nil {
					w.t.Errorf("refused with %v", err)
				}
				*open = append(*open, active.Waiting)
			},
			OnComplete: func(any, error) {},
		}, runs.Submit{})
	}, after)
}

// A held run does not list calls that have a result.
func TestAHeldRunTellsWhatIsOpen(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	var open [][]string
	h.look(time.Minute, &open)
	h.decide(2*time.Minute, clientResult)
	h.look(3*time.Minute, &open)
	h.decide(4*time.Minute, approves("ask"))
	h.run(heldInput())
	if want := [][]string{{"ask", "client"}, {"ask"}}; !slices.EqualFunc(open, want, slices.Equal) {
		t.Errorf("the run waited for %q, want %q", open, want)
	}
}

// An answer may come before the other calls of the turn have ended: nobody is asked then.
func TestAHeldRunIsAnsweredEarly(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	slow := h.tool
	h.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.CallID == "now" {
			answers := make(chan any, 1)
			h.env.RegisterDelayedCallback(func() {
				h.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{approves("ask"), clientResult}}, answers)
			}, 0)
			<-answers
		}
		return slow(in)
	}
	if result, _ := h.run(heldInput()); result.Outcome != runs.OutcomeSuccess || len(h.told) != 0 || len(h.made()) != 3 {
		t.Errorf("%+v after %q; readers were told %+v", result, h.made(), h.told)
	}
}

// A wait is no time of the run's. One that takes long is parked, hears everything there, and goes
// on where the run was.
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
		t.Fatalf("after %s it is parked with %+v", took, parked)
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
	if result.Outcome != runs.OutcomeSuccess || !slices.Equal(again.made(), []string{"ask", "client"}) || len(again.told) != 0 || again.models[0].Turn != 2 {
		t.Errorf("%+v after %q and %+v", result, again.made(), again.models)
	}
}

// Whoever cancels a run that is held ends it, parked or not, and takes the questions away.
func TestAHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	answers := make(chan any, 1)
	h.env.RegisterDelayedCallback(func() { h.env.SignalWorkflow(runs.SignalCancel, runs.Cancel{RunID: "r"}) }, time.Minute)
	if result, finish := h.run(heldInput()); result.Outcome != runs.OutcomeCancelled || finish.Interrupts != nil || len(h.made()) != 1 {
		t.Errorf("%+v, finished with %+v after %q", result, finish, h.made())
	}
	last := h.notices[len(h.notices)-1]
	if last.Event != runs.EventDecided || len(last.Calls) != 1 || last.Calls[0].Decision.Kind != runs.DecisionCancel {
		t.Errorf("people were told at last %+v", last)
	}
	p := setupHeld(t)
	p.env.ExecuteWorkflow(runs.TypeRun, heldInput())
	var parked runs.ParkedInput
	continuedAs(t, p.env.GetWorkflowError(), runs.TypeParked, &parked)
	next := unpark(t, parked, time.Hour, func(w *fixture) {
		w.env.SignalWorkflow(runs.SignalCancel, runs.Cancel{RunID: "r"})
		w.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{clientResult}}, answers)
	})
	again := setupHeld(t)
	if result, _ := again.run(next); result.Outcome != runs.OutcomeCancelled || len(again.made())+len(again.models) != 0 {
		t.Errorf("a parked one: %+v after %q", result, again.made())
	}
}

// What was decided when the run is cancelled was acknowledged: the log is told of it, and no tool
// is called. So it is when a call is cancelled that was about to be made.
func TestDecisionsOfACancelledRunAreWrittenDown(t *testing.T) {
	t.Parallel()
	cancels := func(h *heldFixture) { h.env.SignalWorkflow(runs.SignalCancel, runs.Cancel{RunID: "r"}) }
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
				told := make(chan struct{})
				h.env.RegisterDelayedCallback(func() { cancels(h); close(told) }, 0)
				<-told
				return runs.ToolAnswer{}, temporal.NewCanceledError()
			}
		},
	} {
		h := setupHeld(t)
		play(h)
		result, finish := h.run(heldInput())
		if result.Outcome != runs.OutcomeCancelled || len(finish.Unfinished) > 0 {
			t.Errorf("%s: %+v, finished with %+v", name, result, finish)
		}
		for _, c := range h.calls {
			if c.CallID != "now" && (!c.Cancelled || !c.Compensates || c.Decision == nil) {
				t.Errorf("%s: %s is called with %+v", name, c.CallID, c)
			}
		}
		if want := map[string]int{"while it waits for more": 2, "before a worker takes the call": 3}[name]; len(h.calls) != want {
			t.Errorf("%s: the calls are %q", name, h.made())
		}
	}
}

// Nobody decides in time: the agent may want the run to fail.
func TestAHeldRunFailsWhenNobodyDecides(t *testing.T) {
	t.Parallel()
	h := setupHeld(t)
	h.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(10, "ask")
		a.Calls[0].Approval, a.WaitCount = &runs.Approval{Args: "args", Expires: time.Minute, OnExpiry: runs.OnExpiryFail}, 1
		return a, nil
	}
	if result, _ := h.run(heldInput()); result.Code != runs.CodeApprovalExpired || len(h.made()) != 0 {
		t.Errorf("%+v after %q", result, h.made())
	}
}

// A result that comes by signal goes to the log and is a decision then, however long the log is
// away. What is unknown, about somebody's decision, doubled, or no result changes nothing.
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
		for _, call := range []string{"nobody's", "ask", "now", "client", "client"} {
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
		t.Errorf("kept are %+v", h.kept)
	}
	for _, c := range h.calls {
		if c.CallID == "client" && (c.Decision.Input != 80 || c.Decision.Digest != "kept") {
			t.Errorf("the call is answered by %+v", c.Decision)
		}
	}
}

// Who parks waits for results that are on their way into the log.
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
	if d := parked.Run.Progress.Held.Calls[1].Decision; d == nil || d.Input != 80 {
		t.Errorf("the call is parked with %+v", d)
	}
}
