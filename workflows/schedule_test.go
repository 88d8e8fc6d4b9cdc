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
	in  runs.FireInput
	// begin, look and withdraw are the activities. Each test sets the activities that it expects.
	begin    func(in runs.FireInput) (runs.FiredRun, error)
	look     func() (runs.RunStatus, error)
	withdraw func(in runs.FireInput) (runs.RunStatus, error)
	begun    []runs.FireInput
	looks    []time.Time
}

var (
	nominal = time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	firing  = runs.FireInput{Tenant: "shop", Schedule: "daily", Revision: 7}
	itsRun  = runs.FiredRun{Run: runs.Ref{Tenant: "shop", Thread: "t", ID: "r"}}
)

func setupSchedule(t *testing.T) *scheduleFixture {
	t.Helper()
	f := &scheduleFixture{t: t, in: firing}
	f.env = newEnv(t)
	f.env.SetDataConverter(runs.DataConverter())
	scheduled := temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(nominal.Add(300 * time.Millisecond))
	if err := f.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(scheduled)); err != nil {
		t.Fatal(err)
	}
	workflows.Register(f.env, nil)
	f.begin = func(runs.FireInput) (runs.FiredRun, error) { return itsRun, nil }
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FireInput) (runs.FiredRun, error) {
		f.begun = append(f.begun, in)
		return f.begin(in)
	}, activity.RegisterOptions{Name: runs.ActivityFire})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.Ref) (runs.RunStatus, error) {
		if in != itsRun.Run {
			t.Errorf("status of an unexpected run: %+v", in)
		}
		f.looks = append(f.looks, f.env.Now())
		return f.look()
	}, activity.RegisterOptions{Name: runs.ActivityRunStatus})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.FireInput) (runs.RunStatus, error) {
		return f.withdraw(in)
	}, activity.RegisterOptions{Name: runs.ActivityCancelRun})
	return f
}

// run executes the firing and returns its result.
func (f *scheduleFixture) run() (result runs.FireResult, err error) {
	f.t.Helper()
	f.env.ExecuteWorkflow(runs.TypeFire, f.in)
	if err = f.env.GetWorkflowError(); err == nil {
		err = f.env.GetWorkflowResult(&result)
	}
	return result, err
}

// endsAfter makes the run report its end after some time.
func (f *scheduleFixture) endsAfter(d time.Duration, ended runs.RunEnd) {
	f.env.RegisterDelayedCallback(func() { f.env.SignalWorkflow(runs.SignalEnded, ended) }, d)
}

func TestAFiringLastsAsLongAsItsRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	tries := 0
	f.begin = func(in runs.FireInput) (runs.FiredRun, error) {
		if tries++; tries < 3 {
			return runs.FiredRun{}, errors.New("the log is away")
		}
		if !in.At.Equal(nominal) || in.Fire == "" || in.Revision != firing.Revision {
			t.Errorf("start of the run: got %+v", in)
		}
		return itsRun, nil
	}
	f.look = func() (runs.RunStatus, error) { return runs.RunStatus{}, nil }
	began := f.env.Now()
	f.endsAfter(70*time.Hour, runs.RunEnd{Outcome: runs.OutcomeSuccess})
	result, err := f.run()
	if err != nil || result.Outcome != runs.OutcomeSuccess || result.Run != itsRun.Run || f.env.Now().Sub(began) < 70*time.Hour {
		t.Errorf("got %+v after %s (%v)", result, f.env.Now().Sub(began), err)
	}
	if n := len(f.looks); n < 60 || n > 80 {
		t.Errorf("checks of a run of 70 hours: got %d, want about one an hour", n)
	}
}

func TestAFiringFailsWithItsRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.endsAfter(time.Second, runs.RunEnd{Outcome: runs.OutcomeError, Code: "limit_turns"})
	_, err := f.run()
	var app *temporal.ApplicationError
	var result runs.FireResult
	if !errors.As(err, &app) || app.Type() != runs.ErrorRunFailed || app.Details(&result) != nil || result.Code != "limit_turns" {
		t.Errorf("got %+v (%v)", result, err)
	}
}

func TestARefusedFiringIsOver(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.begin = func(runs.FireInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: itsRun.Run, Refused: runs.ErrorBusy}, nil
	}
	if result, err := f.run(); err != nil || result.Refused != runs.ErrorBusy || len(f.looks) != 0 {
		t.Errorf("got %+v (%v)", result, err)
	}
}

// TestAFiringOfARunThatIsOverEnds: a trigger in the same second as another firing joins that
// firing, whose run may have ended already.
func TestAFiringOfARunThatIsOverEnds(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.begin = func(runs.FireInput) (runs.FiredRun, error) {
		return runs.FiredRun{Run: itsRun.Run, AlreadyBegun: true}, nil
	}
	f.look = func() (runs.RunStatus, error) {
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
	}
	began := f.env.Now()
	if result, err := f.run(); err != nil || result.Outcome != runs.OutcomeSuccess || f.env.Now().Sub(began) > time.Second {
		t.Errorf("after %s: got %+v (%v)", f.env.Now().Sub(began), result, err)
	}
}

// TestAFiringLooksAfterItsRun: a run whose workflow is terminated reports no end. The firing checks
// its status.
func TestAFiringLooksAfterItsRun(t *testing.T) {
	t.Parallel()
	f := setupSchedule(t)
	f.look = func() (runs.RunStatus, error) {
		if len(f.looks) < 3 {
			return runs.RunStatus{}, nil
		}
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeCancelled}}, nil
	}
	began := f.env.Now()
	result, err := f.run()
	if err != nil || result.Outcome != runs.OutcomeCancelled || len(f.looks) != 3 {
		t.Fatalf("got %+v after %d checks (%v)", result, len(f.looks), err)
	}
	for i, want := range []time.Duration{time.Minute, 3 * time.Minute, 7 * time.Minute} {
		if at := f.looks[i].Sub(began); at < want || at > want+10*time.Second {
			t.Errorf("check %d: got it after %s, want %s", i, at, want)
		}
	}
}

// TestAFiringAsksTheLogHowItsRunEnded: the log has the end of a run that cannot report its own.
func TestAFiringAsksTheLogHowItsRunEnded(t *testing.T) {
	t.Parallel()
	for _, ended := range []runs.RunEnd{{}, {Outcome: runs.OutcomeFenced}} {
		f := setupSchedule(t)
		f.look = func() (runs.RunStatus, error) {
			return runs.RunStatus{RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, nil
		}
		f.endsAfter(time.Second, ended)
		if result, err := f.run(); err != nil || result.Outcome != runs.OutcomeSuccess || len(f.looks) != 1 {
			t.Errorf("got %+v after %d checks (%v)", result, len(f.looks), err)
		}
	}
}

func TestACancelledFiringCancelsItsRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		standing runs.RunStatus
		reports  bool // the run reports its end
		try      bool
	}{
		"running":          {runs.RunStatus{}, true, false},
		"over":             {runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeSuccess}}, false, false},
		"waits for people": {runs.RunStatus{RunEnd: runs.RunEnd{Outcome: runs.OutcomeInterrupt}}, false, false},
		"no wait":          {runs.RunStatus{}, false, true},
	} {
		f := setupSchedule(t)
		f.in.TryCancel = c.try
		began, withdrawn := f.env.Now(), 0
		f.withdraw = func(in runs.FireInput) (runs.RunStatus, error) {
			if withdrawn++; !in.At.Equal(nominal) || in.Schedule != firing.Schedule {
				t.Errorf("%s: cancel: got %+v", name, in)
			}
			return c.standing, nil
		}
		f.env.RegisterDelayedCallback(f.env.CancelWorkflow, 5*time.Second)
		if c.reports {
			f.endsAfter(20*time.Second, runs.RunEnd{Outcome: runs.OutcomeCancelled})
		}
		_, err := f.run()
		if !temporal.IsCanceledError(err) || withdrawn != 1 {
			t.Errorf("%s: got %d cancels (%v)", name, withdrawn, err)
		}
		if lasted := f.env.Now().Sub(began); c.reports != (lasted >= 20*time.Second) {
			t.Errorf("%s: duration of the firing: got %s", name, lasted)
		}
	}
}

const itsFire = "fire/shop/daily-2030-01-31T09:00:00Z"

// isTold expects one signal to the firing with the run's end.
func (w *fixture) isTold(fire string, ended runs.RunEnd) {
	w.env.OnSignalExternalWorkflow("default-test-namespace", fire, "", runs.SignalEnded, ended).Return(nil).Once()
}

func TestARunReportsItsFiring(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		return runs.ModelAnswer{}, temporal.NewNonRetryableApplicationError("no", "auth", nil)
	}
	w.isTold(itsFire, runs.RunEnd{Outcome: runs.OutcomeError, Code: "auth"})
	in := input
	in.Fire = itsFire
	w.run(in)
	w.env.AssertExpectations(t)
}

// TestContinuedRunsKeepTheirFiring: a run that continues a run with interrupts belongs to the same
// firing. A run of another firing ends the first firing.
func TestContinuedRunsKeepTheirFiring(t *testing.T) {
	t.Parallel()
	in := input
	in.Fire = itsFire
	for name, c := range map[string]struct{ offers, want string }{
		"a client's run": {"", itsFire}, "another firing's": {"fire/shop/daily-2", "fire/shop/daily-2"},
	} {
		w := setupInterrupted(t)
		if c.want != itsFire {
			w.isTold(itsFire, runs.RunEnd{})
		}
		offered := waiting("r2")
		offered.Fire = c.offers
		w.env.RegisterDelayedCallback(func() {
			w.update(runs.UpdateSubmit, runs.SubmitRequest{
				RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{approves("ask")},
			}, make(chan any, 1))
		}, time.Minute)
		if next := w.continued(in); next.Run.ID != "r2" || next.Fire != c.want {
			t.Errorf("%s: next run: got %+v", name, next)
		}
		w.env.AssertExpectations(t)
	}
	w := setupInterrupted(t)
	w.env.RegisterDelayedCallback(func() {
		w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{
			approves("ask"), {CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Input: 71},
		}}, make(chan any, 1))
	}, time.Minute)
	if next := w.continued(in); next.Continues != "r" || next.Fire != itsFire {
		t.Errorf("run without an input: got %+v", next)
	}
}
