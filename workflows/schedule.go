package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A schedule is a Temporal schedule that starts the workflow schedule.fire.v1 at each of its times.
// The firing starts the run on its thread like the API does, and is open as long as the run: so
// Temporal's overlap policies apply to runs.

// The run signals its end. The firing also polls the run's status, in case the run was terminated
// from outside; the pause between polls doubles from minPollInterval to maxPollInterval.
const (
	minPollInterval = time.Minute
	maxPollInterval = time.Hour
)

// attributeNominal is the search attribute in which Temporal's schedules put the nominal time.
var attributeNominal = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// ScheduleFire is schedule.fire.v1: it starts the run of a firing, and blocks until the run is
// over. A run that waits for interrupts is not over. A firing whose thread refuses the run ends at
// once, with the reason in the result. If the run ends with an error, so does the firing
// (ErrorRunFailed), and Temporal may pause the schedule.
func ScheduleFire(ctx workflow.Context, in runs.FiringInput) (runs.FiringResult, error) {
	f := &fire{in: in}
	if in.Fired != nil {
		f.fired = *in.Fired
	} else if err := f.begin(ctx); err != nil {
		return runs.FiringResult{}, err
	}
	if f.fired.Refused != "" {
		return runs.FiringResult{FiredRun: f.fired}, nil
	}
	f.listen(ctx)
	if f.fired.AlreadyBegun && in.Fired == nil {
		if err := f.pollStatus(ctx); err != nil {
			return runs.FiringResult{}, err
		}
	}
	if err := f.await(ctx); err != nil {
		return runs.FiringResult{}, err
	}
	result := runs.FiringResult{FiredRun: f.fired, RunEnd: *f.ended}
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case result.Outcome == runs.OutcomeError:
		return result, temporal.NewNonRetryableApplicationError("the run ended with an error", runs.ErrorRunFailed, nil, result)
	}
	return result, nil
}

// fire is the state of one execution of schedule.fire. Only coroutines of the workflow touch it;
// the next execution gets in and fired.
type fire struct {
	in    runs.FiringInput
	fired runs.FiredRun // the run; zero before begin
	ended *runs.RunEnd  // nil = the run is not over, as far as the firing knows
}

// begin starts the run (schedule.run), and blocks until the thread has taken or refused it. If the
// firing is cancelled meanwhile, the run may have started, so begin cancels it.
func (f *fire) begin(ctx workflow.Context) error {
	f.in.FiringID = workflow.GetInfo(ctx).WorkflowExecution.ID
	f.in.At = workflow.GetInfo(ctx).WorkflowStartTime
	if nominal, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(attributeNominal); ok {
		f.in.At = nominal
	}
	f.in.At = f.in.At.UTC().Truncate(time.Second) // as in the id
	err := workflow.ExecuteActivity(withRetries(ctx, "begin"), runs.ActivityStartFiredRun, f.in).Get(ctx, &f.fired)
	if temporal.IsCanceledError(err) {
		if _, err := f.cancelRun(ctx); err != nil {
			return err
		}
	}
	return err
}

// withRetries returns the context for an activity that takes less than a minute, and is retried
// without limit, for instance while NATS is unavailable.
func withRetries(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: summary, WaitForCancellation: true,
		RetryPolicy: retryPolicy(0),
	})
}

// listen starts the coroutine that receives the signal that the run is over. It does not block.
func (f *fire) listen(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancelled firing waits for the signal, too
	signals := workflow.GetSignalChannelWithOptions(ctx, runs.SignalEnded, workflow.SignalChannelOptions{Description: "the run is over"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var e runs.RunEnd
		signals.Receive(ctx, &e)
		f.ended = &e
	})
}

// await blocks until the run is over, and cancels the run when the firing is cancelled. Then
// f.ended is set. The error may be to continue as new.
func (f *fire) await(ctx workflow.Context) error {
	for pause := minPollInterval; f.ended == nil; pause = min(2*pause, maxPollInterval) {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && ctx.Err() == nil {
			next := f.in
			next.Fired = &f.fired
			return continueWith(ctx, runs.TypeFiring, next)
		}
		_, err := workflow.AwaitWithTimeout(ctx, pause, func() bool { return f.ended != nil })
		switch {
		case f.ended != nil:
		case err != nil:
			return f.awaitCancelled(ctx)
		default:
			if err := f.pollStatus(ctx); err != nil {
				return err
			}
		}
	}
	if f.ended.Outcome != "" && f.ended.Outcome != runs.OutcomeFenced {
		return nil
	}
	s, err := f.runStatus(ctx)
	f.ended = &s.RunEnd
	return err
}

// pollStatus sets f.ended if the run is over, as far as log and workflow show.
func (f *fire) pollStatus(ctx workflow.Context) error {
	s, err := f.runStatus(ctx) // the signal has no outcome: the log has it
	if err == nil && s.Over && f.ended == nil {
		f.ended = &s.RunEnd
	}
	return err
}

// runStatus returns the run's status (schedule.status), also when the firing is cancelled.
func (f *fire) runStatus(ctx workflow.Context) (s runs.RunStatus, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err = workflow.ExecuteActivity(withRetries(ctx, "look"), runs.ActivityRunStatus, f.fired.Run).Get(ctx, &s)
	return s, err
}

// awaitCancelled cancels the run. It blocks until the run ends, except with TryCancel. A run that
// has ended with interrupts counts as ended: the interrupts stay open, and approvers can still
// decide.
func (f *fire) awaitCancelled(ctx workflow.Context) error {
	s, err := f.cancelRun(ctx)
	if err != nil {
		return err
	}
	if f.ended == nil && (s.Over || s.Outcome != "" || f.in.TryCancel) {
		f.ended = &s.RunEnd
	}
	if f.in.TryCancel {
		return nil
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return f.await(disconnected)
}

// cancelRun cancels the run (schedule.cancel), also when the firing is cancelled, and returns its
// status.
func (f *fire) cancelRun(ctx workflow.Context) (s runs.RunStatus, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := f.in
	if f.fired.Run.ID != "" {
		in.Fired = &f.fired // otherwise the activity derives the run from the schedule, which may be gone
	}
	err = workflow.ExecuteActivity(withRetries(ctx, "cancel"), runs.ActivityCancelRun, in).Get(ctx, &s)
	return s, err
}

// notifySchedule signals the end of the run to the firing that started it; without one it does
// nothing. The firing may have ended itself, so errors are ignored. It blocks until the signal is
// delivered, also when the run is cancelled.
func (r *run) notifySchedule(ctx workflow.Context, ended runs.RunEnd) {
	if r.in.FiringID == "" {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	_ = workflow.SignalExternalWorkflow(ctx, r.in.FiringID, "", runs.SignalEnded, ended).Get(ctx, nil)
}
