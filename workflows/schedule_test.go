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
	fixture := &scheduleFixture{t: t, in: firing}
	fixture.env = newEnvironment(t)
	fixture.env.SetDataConverter(runs.DataConverter())
	scheduled := temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(scheduledTime.Add(300 * time.Millisecond))
	if err := fixture.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(scheduled)); err != nil {
		t.Fatal(err)
	}
	workflows.Register(fixture.env, nil)
	fixture.startRun = func(runs.FiringInput) (runs.FiredRun, error) { return firedRun, nil }
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FiringInput) (runs.FiredRun, error) {
		fixture.started = append(fixture.started, in)
		return fixture.startRun(in)
	}, activity.RegisterOptions{Name: runs.ActivityStartFiredRun})
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.Ref) (runs.RunStatus, error) {
		wantEqual(t, "run of the check", in, firedRun.Run)
		fixture.checkTimes = append(fixture.checkTimes, fixture.env.Now())
		return fixture.checkRun()
	}, activity.RegisterOptions{Name: runs.ActivityRunStatus})
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FiringInput) (runs.RunStatus, error) {
		return fixture.cancelRun(in)
	}, activity.RegisterOptions{Name: runs.ActivityCancelRun})
	return fixture
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
	fixture := setupSchedule(t)
	attempts := 0
	fixture.startRun = func(in runs.FiringInput) (runs.FiredRun, error) {
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
	fixture.checkRun = func() (runs.RunStatus, error) { return runs.RunStatus{}, nil }
	began := fixture.env.Now()
	fixture.reportEndAfter(70*time.Hour, runs.RunEnd{Outcome: runs.OutcomeSuccess})
	result, err := fixture.run()
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "run of the firing", result.Run, firedRun.Run)
	if fixture.env.Now().Sub(began) < 70*time.Hour {
		t.Errorf("time of the firing = %v, want at least %v", fixture.env.Now().Sub(began), 70*time.Hour)
	}
	if n := len(fixture.checkTimes); n < 60 || n > 80 {
		t.Errorf("checks of a run of 70 hours: got %d, want about one an hour", n)
	}
}

func TestFiringFailsWithRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedule(t)
	fixture.reportEndAfter(time.Second, runs.RunEnd{Outcome: runs.OutcomeError, Code: "limit_turns"})
	_, err := fixture.run()
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
	fixture := setupSchedule(t)
	fixture.startRun = func(runs.FiringInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: firedRun.Run, Refused: runs.ErrorBusy}, nil
	}
	result, err := fixture.run()
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "refusal of the firing", result.Refused, runs.ErrorBusy)
	wantEqual(t, "number of checks", len(fixture.checkTimes), 0)
}

// TestFiringOfEndedRun: a trigger in the same second as another firing joins that
// firing, whose run may have ended already.
func TestFiringOfEndedRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedule(t)
	fixture.startRun = func(runs.FiringInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: firedRun.Run, AlreadyBegun: true}, nil
	}
	fixture.checkRun = func() (runs.RunStatus, error) {
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
	}
	began := fixture.env.Now()
	result, err := fixture.run()
	if err != nil {
		t.Fatalf("after %s: %v", fixture.env.Now().Sub(began), err)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if fixture.env.Now().Sub(began) > time.Second {
		t.Errorf("time of the firing = %v, want at most %v", fixture.env.Now().Sub(began), time.Second)
	}
}

// TestFiringChecksRunStatus: a run whose workflow is terminated reports no end. The firing checks
// its status.
func TestFiringChecksRunStatus(t *testing.T) {
	t.Parallel()
	fixture := setupSchedule(t)
	fixture.checkRun = func() (runs.RunStatus, error) {
		if len(fixture.checkTimes) < 3 {
			return runs.RunStatus{}, nil
		}
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeCancelled}}, nil
	}
	began := fixture.env.Now()
	result, err := fixture.run()
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	mustEqual(t, "number of checks", len(fixture.checkTimes), 3)
	for i, want := range []time.Duration{time.Minute, 3 * time.Minute, 7 * time.Minute} {
		if at := fixture.checkTimes[i].Sub(began); at < want || at > want+10*time.Second {
			t.Errorf("check %d: got it after %s, want %s", i, at, want)
		}
	}
}

// TestFiringReadsOutcomeFromLog: the log has the end of a run that cannot report its own.
func TestFiringReadsOutcomeFromLog(t *testing.T) {
	t.Parallel()
	for _, ended := range []runs.RunEnd{{}, {Outcome: runs.OutcomeFenced}} {
		fixture := setupSchedule(t)
		fixture.checkRun = func() (runs.RunStatus, error) {
			return runs.RunStatus{RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
		}
		fixture.reportEndAfter(time.Second, ended)
		result, err := fixture.run()
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
		wantEqual(t, "number of checks", len(fixture.checkTimes), 1)
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
		fixture := setupSchedule(t)
		fixture.in.TryCancel = c.tryCancel
		began, cancels := fixture.env.Now(), 0
		fixture.cancelRun = func(in runs.FiringInput) (runs.RunStatus, error) {
			cancels++
			wantEqual(t, name+": at", in.At, scheduledTime)
			wantEqual(t, name+": schedule", in.Schedule, firing.Schedule)
			return c.status, nil
		}
		fixture.env.RegisterDelayedCallback(fixture.env.CancelWorkflow, 5*time.Second)
		if c.reportsEnd {
			fixture.reportEndAfter(20*time.Second, runs.RunEnd{Outcome: runs.OutcomeCancelled})
		}
		_, err := fixture.run()
		if !temporal.IsCanceledError(err) {
			t.Errorf("%s: error of the firing = %v, want a cancel", name, err)
		}
		wantEqual(t, name+": number of cancels", cancels, 1)
		lasted := fixture.env.Now().Sub(began)
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
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		return runs.ModelAnswer{}, temporal.NewNonRetryableApplicationError("no", "auth", nil)
	}
	fixture.expectFiringSignal(firingID, runs.RunEnd{Outcome: runs.OutcomeError, Code: "auth"})
	in := input
	in.FiringID = firingID
	fixture.run(in)
	fixture.env.AssertExpectations(t)
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
		fixture := setupInterrupted(t)
		if c.want != firingID {
			fixture.expectFiringSignal(firingID, runs.RunEnd{})
		}
		offered := queuedInput("r2")
		offered.FiringID = c.offered
		fixture.env.RegisterDelayedCallback(func() {
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{
				RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{approvalOf("ask")},
			}, make(chan any, 1))
		}, time.Minute)
		next := fixture.runUntilContinued(in)
		wantEqual(t, name+": run ID", next.Run.ID, "r2")
		wantEqual(t, name+": firing", next.FiringID, c.want)
		fixture.env.AssertExpectations(t)
	}
	fixture := setupInterrupted(t)
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{
			approvalOf("ask"), {CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Proposal: 71},
		}}, make(chan any, 1))
	}, time.Minute)
	next := fixture.runUntilContinued(in)
	wantEqual(t, "run without an input: continued run", next.Continues, "r")
	wantEqual(t, "run without an input: firing", next.FiringID, firingID)
}
