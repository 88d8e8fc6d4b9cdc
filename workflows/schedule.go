package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A run tells when it is over. Looks are for one whose workflow was stopped from outside; the pause between two
// doubles.
const (
	firstLook = time.Minute
	lastLook  = time.Hour
)

// attributeNominal is where Temporal's schedules put the nominal time of what they start.
var attributeNominal = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// ScheduleFire is schedule.fire.v1: it begins the run of a time of a schedule, and lasts until that is over, so
// that what Temporal does about overlaps is about runs. A run that waits for people is not over. It waits as
// cheaply as they do: for a signal, and a look now and then.
func ScheduleFire(ctx workflow.Context, in runs.FireInput) (runs.FireResult, error) {
	f := &fire{in: in}
	if in.Fired != nil {
		f.fired = *in.Fired
	} else if err := f.begin(ctx); err != nil {
		return runs.FireResult{}, err
	}
	if f.fired.Refused != "" {
		return runs.FireResult{Fired: f.fired}, nil
	}
	f.listen(ctx)
	if f.fired.AlreadyBegun && in.Fired == nil {
		if err := f.look(ctx); err != nil {
			return runs.FireResult{}, err
		}
	}
	if err := f.await(ctx); err != nil {
		return runs.FireResult{}, err
	}
	result := runs.FireResult{Fired: f.fired, Ended: *f.ended}
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case result.Outcome == runs.OutcomeError:
		return result, temporal.NewNonRetryableApplicationError("the run ended with an error", runs.ErrorRunFailed, nil, result)
	}
	return result, nil
}

// fire is the state of one execution.
type fire struct {
	in    runs.FireInput
	fired runs.Fired
	ended *runs.Ended
}

// begin begins the run. Where that is cancelled, it may have begun nevertheless.
func (f *fire) begin(ctx workflow.Context) error {
	f.in.Fire = workflow.GetInfo(ctx).WorkflowExecution.ID
	f.in.At = workflow.GetInfo(ctx).WorkflowStartTime
	if nominal, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(attributeNominal); ok {
		f.in.At = nominal
	}
	f.in.At = f.in.At.UTC().Truncate(time.Second) // as in the id
	err := workflow.ExecuteActivity(patiently(ctx, "begin"), runs.ActivityFire, f.in).Get(ctx, &f.fired)
	if temporal.IsCanceledError(err) {
		if _, err := f.withdraw(ctx); err != nil {
			return err
		}
	}
	return err
}

// patiently is for what takes a moment, and waits for the log as long as that takes.
func patiently(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: summary, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
}

// listen hears that the run is over.
func (f *fire) listen(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // it is heard after a cancel, too
	signals := workflow.GetSignalChannelWithOptions(ctx, runs.SignalEnded, workflow.SignalChannelOptions{Description: "the run is over"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var e runs.Ended
		signals.Receive(ctx, &e)
		f.ended = &e
	})
}

// await waits until the run is over, and cancels it when the firing is cancelled. It fails also to continue as
// new.
func (f *fire) await(ctx workflow.Context) error {
	for pause := firstLook; f.ended == nil; pause = min(2*pause, lastLook) {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && ctx.Err() == nil {
			next := f.in
			next.Fired = &f.fired
			return continueWith(ctx, runs.TypeFire, next)
		}
		_, err := workflow.AwaitWithTimeout(ctx, pause, func() bool { return f.ended != nil })
		switch {
		case f.ended != nil:
		case err != nil:
			return f.awaitCancelled(ctx)
		default:
			if err := f.look(ctx); err != nil {
				return err
			}
		}
	}
	if f.ended.Outcome != "" && f.ended.Outcome != runs.OutcomeFenced {
		return nil
	}
	s, err := f.standing(ctx)
	f.ended = &s.Ended
	return err
}

// look finds out whether the run is over.
func (f *fire) look(ctx workflow.Context) error {
	s, err := f.standing(ctx)
	if err == nil && s.Over && f.ended == nil {
		f.ended = &s.Ended
	}
	return err
}

// standing also tells it to a firing that has been cancelled.
func (f *fire) standing(ctx workflow.Context) (s runs.Status, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err = workflow.ExecuteActivity(patiently(ctx, "look"), runs.ActivityRunStatus, f.fired.Run).Get(ctx, &s)
	return s, err
}

// awaitCancelled cancels the run and waits for its end, unless it is only to try. What the run asks people stays asked:
// nobody gives questions up by not answering them.
func (f *fire) awaitCancelled(ctx workflow.Context) error {
	s, err := f.withdraw(ctx)
	if err != nil {
		return err
	}
	if f.ended == nil && (s.Over || s.Outcome != "" || f.in.TryCancel) {
		f.ended = &s.Ended
	}
	if f.in.TryCancel {
		return nil
	}
	apart, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return f.await(apart)
}

// withdraw cancels the run, and tells how far it has come.
func (f *fire) withdraw(ctx workflow.Context) (s runs.Status, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := f.in
	if f.fired.Run.ID != "" {
		in.Fired = &f.fired // what the schedule said then may be gone
	}
	err = workflow.ExecuteActivity(patiently(ctx, "cancel"), runs.ActivityCancelRun, in).Get(ctx, &s)
	return s, err
}

// notifySchedule tells the firing that began a run that it is over. That may be over itself.
func (r *run) notifySchedule(ctx workflow.Context, ended runs.Ended) {
	if r.in.Fire == "" {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	_ = workflow.SignalExternalWorkflow(ctx, r.in.Fire, "", runs.SignalEnded, ended).Get(ctx, nil)
}
