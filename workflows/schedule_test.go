package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// scheduleFixture is a firing and the activities that it calls.
type scheduleFixture struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment
	in  runs.FiringInput
	// startRun, look and withdraw are the activities. Each test sets the activities that it
	// expects.
	startRun   func(in runs.FiringInput) (runs.FiredRun, error)
	checkRun   func() (runs.RunStatus, error)
	cancelRun  func(in runs.FiringInput) (runs.RunStatus, error)
	started    []runs.FiringInput
	checkTimes []time.Time
}

var (
	scheduledTime = time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	firing        = runs.FiringInput{Tenant: "shop", Schedule: "daily", Revision: 7}
	firedRun      = runs.FiredRun{Run: runs.Ref{Tenant: "shop", Thread: "t", ID: "r"}}
)

// setupSchedule returns a fixture of the workflow of a schedule's firing.
func setupSchedule(t *testing.T) *scheduleFixture {
	t.Helper()
	f := &scheduleFixture{t: t, in: firing}
	f.env = newEnvironment(t)
	f.env.SetDataConverter(runs.DataConverter())
	scheduled := temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(scheduledTime.Add(300 * time.Millisecond))
	if err := f.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(scheduled)); err != nil {
		t.Fatal(err)
	}
	workflows.Register(f.env, nil)
	f.startRun = func(runs.FiringInput) (runs.FiredRun, error) { return firedRun, nil }
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FiringInput) (runs.FiredRun, error) {
		f.started = append(f.started, in)
		return f.startRun(in)
	}, activity.RegisterOptions{Name: runs.ActivityStartFiredRun})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.Ref) (runs.RunStatus, error) {
		wantEqual(t, "run of the check", in, firedRun.Run)
		f.checkTimes = append(f.checkTimes, f.env.Now())
		return f.checkRun()
	}, activity.RegisterOptions{Name: runs.ActivityRunStatus})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FiringInput) (runs.RunStatus, error) {
		return f.cancelRun(in)
	}, activity.RegisterOptions{Name: runs.ActivityCancelRun})
	return f
}

// run executes the firing and returns its result.
func (f *scheduleFixture) run() (result runs.FiringResult, err error) {
	f.t.Helper()
	f.env.ExecuteWorkflow(runs.TypeFiring, f.in)
	if err = f.env.GetWorkflowError(); err == nil {
		err = f.env.GetWorkflowResult(&result)
	}
	return result, err
}

// reportEndAfter makes the run report its end after some time.
func (f *scheduleFixture) reportEndAfter(d time.Duration, ended runs.RunEnd) {
	f.env.RegisterDelayedCallback(func() { f.env.SignalWorkflow(runs.SignalEnded, ended) }, d)
}

func TestFiringLastsAsLongAsRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	attempts := 0
	f.startRun = func(in runs.FiringInput) (runs.FiredRun, error) {
		if attempts++; attempts < 3 {
			return runs.FiredRun{}, errors.New("the log is away")
		}
		wantEqual(t, "start of the run: at", in.At, scheduledTime)
		if in.FiringID == "" {
			t.Error("start of the run: Fire is empty, want a value")
		}
		wantEqual(t, "start of the run: revision", in.Revision, firing.Revision)
		return firedRun, nil
	}
	f.checkRun = func() (runs.RunStatus, error) { return runs.RunStatus{}, nil }
	began := f.env.Now()
	f.reportEndAfter(70*time.Hour, runs.RunEnd{Outcome: runs.OutcomeSuccess})
	result, err := f.run()
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "run of the firing", result.Run, firedRun.Run)
	if f.env.Now().Sub(began) < 70*time.Hour {
		t.Errorf("time of the firing = %v, want at least %v", f.env.Now().Sub(began), 70*time.Hour)
	}
	if n := len(f.checkTimes); n < 60 || n > 80 {
		t.Errorf("checks of a run of 70 hours: got %d, want about one an hour", n)
	}
}

func TestFiringFailsWithRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.reportEndAfter(time.Second, runs.RunEnd{Outcome: runs.OutcomeError, Code: "limit_turns"})
	_, err := f.run()
	var app *temporal.ApplicationError
	var result runs.FiringResult
	if !errors.As(err, &app) {
		t.Fatalf("error of the firing = %v, want a %T", err, app)
	}
	wantEqual(t, "type of the error", app.Type(), runs.ErrorRunFailed)
	if app.Details(&result) != nil {
		t.Fatalf("details of the error = %v, want the result of the firing", app)
	}
	wantEqual(t, "code", result.Code, "limit_turns")
}

func TestRefusedFiring(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.startRun = func(runs.FiringInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: firedRun.Run, Refused: runs.ErrorBusy}, nil
	}
	result, err := f.run()
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "refusal of the firing", result.Refused, runs.ErrorBusy)
	wantEqual(t, "number of checks", len(f.checkTimes), 0)
}

// TestFiringOfEndedRun: a trigger in the same second as another firing joins that
// firing, whose run may have ended already.
func TestFiringOfEndedRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.startRun = func(runs.FiringInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: firedRun.Run, AlreadyBegun: true}, nil
	}
	f.checkRun = func() (runs.RunStatus, error) {
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
	}
	began := f.env.Now()
	result, err := f.run()
	if err != nil {
		t.Fatalf("after %s: %v", f.env.Now().Sub(began), err)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if f.env.Now().Sub(began) > time.Second {
		t.Errorf("time of the firing = %v, want at most %v", f.env.Now().Sub(began), time.Second)
	}
}

// TestFiringChecksRunStatus: a run whose workflow is terminated reports no end. The firing checks
// its status.
func TestFiringChecksRunStatus(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.checkRun = func() (runs.RunStatus, error) {
		if len(f.checkTimes) < 3 {
			return runs.RunStatus{}, nil
		}
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeCancelled}}, nil
	}
	began := f.env.Now()
	result, err := f.run()
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	mustEqual(t, "number of checks", len(f.checkTimes), 3)
	for i, want := range []time.Duration{time.Minute, 3 * time.Minute, 7 * time.Minute} {
		if at := f.checkTimes[i].Sub(began); at < want || at > want+10*time.Second {
			t.Errorf("check %d: got it after %s, want %s", i, at, want)
		}
	}
}

// TestFiringReadsOutcomeFromLog: the log has the end of a run that cannot report its own.
func TestFiringReadsOutcomeFromLog(t *testing.T) {
	t.Parallel()
	for _, ended := range []runs.RunEnd{{}, {Outcome: runs.OutcomeFenced}} {
		f := setupSchedule(t)
		f.checkRun = func() (runs.RunStatus, error) {
			return runs.RunStatus{RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
		}
		f.reportEndAfter(time.Second, ended)
		result, err := f.run()
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
		wantEqual(t, "number of checks", len(f.checkTimes), 1)
	}
}

func TestCancelledFiringCancelsRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     runs.RunStatus
		reportsEnd bool // the run reports its end
		tryCancel  bool
	}{
		"running":          {runs.RunStatus{}, true, false},
		"over":             {runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, false, false},
		"waits for people": {runs.RunStatus{RunEnd: runs.RunEnd{Outcome: runs.OutcomeInterrupt}}, false, false},
		"no wait":          {runs.RunStatus{}, false, true},
	} {
		f := setupSchedule(t)
		f.in.TryCancel = c.tryCancel
		began, cancels := f.env.Now(), 0
		f.cancelRun = func(in runs.FiringInput) (runs.RunStatus, error) {
			cancels++
			wantEqual(t, name+": at", in.At, scheduledTime)
			wantEqual(t, name+": schedule", in.Schedule, firing.Schedule)
			return c.status, nil
		}
		f.env.RegisterDelayedCallback(f.env.CancelWorkflow, 5*time.Second)
		if c.reportsEnd {
			f.reportEndAfter(20*time.Second, runs.RunEnd{Outcome: runs.OutcomeCancelled})
		}
		_, err := f.run()
		if !temporal.IsCanceledError(err) {
			t.Errorf("%s: error of the firing = %v, want a cancel", name, err)
		}
		wantEqual(t, name+": number of cancels", cancels, 1)
		lasted := f.env.Now().Sub(began)
		wantEqual(t, name+": the firing waits for the run", c.reportsEnd, lasted >= 20*time.Second)
	}
}

const firingID = "fire/shop/daily-2030-01-31T09:00:00Z"

// expectFiringSignal expects one signal to the firing with the run's end.
func (f *fixture) expectFiringSignal(fire string, ended runs.RunEnd) {
	f.env.OnSignalExternalWorkflow("default-test-namespace", fire, "", runs.SignalEnded, ended).Return(nil).Once()
}

func TestRunReportsEndToFiring(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		return runs.ModelAnswer{}, temporal.NewNonRetryableApplicationError("no", "auth", nil)
	}
	f.expectFiringSignal(firingID, runs.RunEnd{Outcome: runs.OutcomeError, Code: "auth"})
	in := input
	in.FiringID = firingID
	f.run(in)
	f.env.AssertExpectations(t)
}

// TestContinuedRunKeepsFiring: a run that continues a run with interrupts belongs to the same
// firing. A run of another firing ends the first firing.
func TestContinuedRunKeepsFiring(t *testing.T) {
	t.Parallel()
	in := input
	in.FiringID = firingID
	for name, c := range map[string]struct{ offered, want string }{
		"a client's run": {"", firingID}, "another firing's": {"fire/shop/daily-2", "fire/shop/daily-2"},
	} {
		f := setupInterrupted(t)
		if c.want != firingID {
			f.expectFiringSignal(firingID, runs.RunEnd{})
		}
		offered := queuedInput("r2")
		offered.FiringID = c.offered
		f.env.RegisterDelayedCallback(func() {
			f.update(runs.UpdateSubmit, runs.SubmitRequest{
				RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{approvalOf("ask")},
			}, make(chan any, 1))
		}, time.Minute)
		next := f.runUntilContinued(in)
		wantEqual(t, name+": run ID", next.Run.ID, "r2")
		wantEqual(t, name+": firing", next.FiringID, c.want)
		f.env.AssertExpectations(t)
	}
	f := setupInterrupted(t)
	f.env.RegisterDelayedCallback(func() {
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{
			approvalOf("ask"), {CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Proposal: 71},
		}}, make(chan any, 1))
	}, time.Minute)
	next := f.runUntilContinued(in)
	wantEqual(t, "run without an input: continued run", next.Continues, "r")
	wantEqual(t, "run without an input: firing", next.FiringID, firingID)
}
