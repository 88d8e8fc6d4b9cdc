package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// nextRunCases are the ways in which a thread continues with another run. begin returns a fixture
// whose run "r" ends in a way that brings the next run, some time after the end.
var nextRunCases = map[string]struct {
	begin func(t *testing.T, after time.Duration) (*fixture, runs.Input)
	want  string // ID of the next run; "" = a run without an input
}{
	"decisions": {func(t *testing.T, after time.Duration) (*fixture, runs.Input) {
		f := setupInterrupted(t)
		f.afterFirstEnd(after, func() {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), clientResult}}, make(chan any, 1))
		})
		return f, input
	}, ""},
	"an input with decisions": {func(t *testing.T, after time.Duration) (*fixture, runs.Input) {
		f := setupInterrupted(t)
		f.afterFirstEnd(after, func() {
			in := queuedInput("r2")
			f.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: in.Digest, Offer: &in, Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
		})
		return f, input
	}, "r2"},
	"decisions before a queued run": {func(t *testing.T, after time.Duration) (*fixture, runs.Input) {
		f := setupInterrupted(t)
		f.afterFirstEnd(after, func() {
			f.submit("r2", runs.OnBusyEnqueue)
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), clientResult}}, make(chan any, 1))
		})
		return f, input
	}, ""},
	"a queued run": {func(t *testing.T, after time.Duration) (*fixture, runs.Input) {
		f := setup(t)
		f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10), nil }
		if after >= time.Second {
			f.finishLate()
		}
		in := input
		in.Queue = []runs.Input{queuedInput("r2"), queuedInput("r3")}
		return f, in
	}, "r2"},
	"a run that cancels the first": {func(t *testing.T, after time.Duration) (*fixture, runs.Input) {
		f := setup(t)
		f.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			taken := make(chan any, 1)
			in := queuedInput("r2")
			f.env.RegisterDelayedCallback(func() {
				f.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: in.Digest, OnBusy: runs.OnBusyInterrupt, Offer: &in}, taken)
			}, 0)
			<-taken
			return runs.ModelAnswer{Outcome: runs.OutcomeCancelled, Seq: 10}, nil
		}
		if after >= time.Second {
			f.finishLate()
		}
		return f, input
	}, "r2"},
}

// afterFirstEnd calls act some time after the first run has ended.
func (f *fixture) afterFirstEnd(after time.Duration, act func()) {
	f.finish = func(bool) error {
		if len(f.finished) == 1 {
			f.env.RegisterDelayedCallback(act, after)
		}
		return nil
	}
}

// stepsOfLaterRuns records the inputs of the activities of all runs but "r", whose model is done
// after one call: model calls, tool calls by their number, and ends.
func (f *fixture) stepsOfLaterRuns() func() []any {
	first, tool := f.model, f.tool
	var steps []any
	var calls []runs.ToolCall // they are made in parallel
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Run.ID == "r" {
			return first(in)
		}
		steps = append(steps, in)
		return modelAnswer(30), nil
	}
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.Run.ID == "r" {
			return tool(in)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		calls = append(calls, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	return func() []any {
		slices.SortFunc(calls, func(a, b runs.ToolCall) int { return strings.Compare(a.Run.ID+a.ID, b.Run.ID+b.ID) })
		for _, c := range calls {
			steps = append(steps, c)
		}
		for _, end := range f.finished {
			if end.Run.ID != "r" {
				steps = append(steps, end)
			}
		}
		return steps
	}
}

// TestNextRunOfYoungExecution: in an execution that is younger than a second, the next run begins
// at once. In an older one the thread continues as new. The activities of the next run get the same
// inputs either way.
func TestNextRunOfYoungExecution(t *testing.T) {
	t.Parallel()
	for name, c := range nextRunCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			young, in := c.begin(t, 100*time.Millisecond)
			got := young.stepsOfLaterRuns()
			result, last := young.run(in)
			wantEqual(t, "outcome of the last run", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, "run of the first end", young.finished[0].Run.ID, "r")
			if last.Run.ID == "r" || c.want != "" && young.finished[1].Run.ID != c.want {
				t.Errorf("the run after the first = %s, want %s", young.finished[1].Run.ID, c.want)
			}

			old, in := c.begin(t, time.Second)
			next := old.runUntilContinued(in)
			for _, end := range old.finished {
				wantEqual(t, "run that has ended in the older execution", end.Run.ID, "r")
			}
			later := setup(t)
			want := later.stepsOfLaterRuns()
			later.run(next)
			times := cmpopts.IgnoreTypes(time.Time{})
			if diff := cmp.Diff(want(), got(), times); diff != "" {
				t.Errorf("inputs of activities of the next runs (-after continue-as-new +in the young execution):\n%s", diff)
			}
		})
	}
}

// TestExecutionContinuesAsNewWhenOld: runs begin in the same execution only as long as it is young,
// so that its history does not grow without a bound.
func TestExecutionContinuesAsNewWhenOld(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10), nil }
	fixture.finish = func(bool) error {
		if end := fixture.finished[len(fixture.finished)-1]; end.Run.ID == "r3" {
			fixture.finishLate()
			return errors.New("the log is unavailable")
		}
		return nil
	}
	in := input
	in.Queue = []runs.Input{queuedInput("r2"), queuedInput("r3"), queuedInput("r4"), queuedInput("r5")}
	next := fixture.runUntilContinued(in)
	wantEqual(t, "next run: run ID", next.Run.ID, "r4")
	wantEqual(t, "next run: number of queued runs", len(next.Queue), 1)
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 3)
}

// TestLongHistoryOfYoungExecution: a young execution with a long history continues as new.
func TestLongHistoryOfYoungExecution(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.env.SetContinueAsNewSuggested(true)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10), nil }
	in := input
	in.Queue = []runs.Input{queuedInput("r2")}
	wantEqual(t, "next run: run ID", fixture.runUntilContinued(in).Run.ID, "r2")
}

// TestExecutionOfNextRun: the records of a run carry the execution before its own, which may have
// begun the run in a workflow task that was lost. The run that follows carries this execution, also
// if it begins here.
func TestExecutionOfNextRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Run.ID == "r2" {
			fixture.env.SetContinueAsNewSuggested(true)
		}
		return modelAnswer(10), nil
	}
	in := input
	in.BegunBy, in.Queue = "before", []runs.Input{queuedInput("r2"), queuedInput("r3")}
	next := fixture.runUntilContinued(in)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	here := fixture.modelCalls[1].Execution
	wantEqual(t, "execution of the first run", fixture.modelCalls[0].Execution, "before")
	if here == "before" { // the test environment has no run ID
		t.Errorf("execution of the second run = %q, want the present one", here)
	}
	wantEqual(t, "run of the next execution", next.Run.ID, "r3")
	wantEqual(t, "execution that may have begun it", next.BegunBy, here)
}

// TestCancelledExecutionContinuesAsNew: if Temporal has cancelled the execution, a queued run
// begins in the next one, which is not cancelled.
func TestCancelledExecutionContinuesAsNew(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		cancelled := make(chan struct{})
		fixture.env.RegisterDelayedCallback(func() { fixture.env.CancelWorkflow(); close(cancelled) }, 0)
		<-cancelled
		return runs.ModelAnswer{Outcome: runs.OutcomeCancelled, Seq: 10}, nil
	}
	in := input
	in.Queue = []runs.Input{queuedInput("r2")}
	wantEqual(t, "next run: run ID", fixture.runUntilContinued(in).Run.ID, "r2")
	wantEqual(t, "end of the first run: outcome", fixture.finished[0].Outcome, runs.OutcomeCancelled)
}

// TestRunAfterProgramContinuesAsNew: coroutines and signal channels of a program may outlive it, so
// no other run begins in its execution.
func TestRunAfterProgramContinuesAsNew(t *testing.T) {
	t.Parallel()
	fixture := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, _ *workflows.Agent) error { return nil }})
	in := input
	in.Program, in.Queue = "p", []runs.Input{queuedInput("r2")}
	wantEqual(t, "next run: run ID", fixture.runUntilContinued(in).Run.ID, "r2")
}

// TestCommandsToRunOfYoungExecution: commands reach the run that is active now. A late cancel of
// the run before it has no effect.
func TestCommandsToRunOfYoungExecution(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancels string
		want    runs.Outcome
	}{"late cancel of the first run": {"r", runs.OutcomeSuccess}, "cancel of the second run": {"r2", runs.OutcomeCancelled}} {
		fixture := setup(t)
		answers := make(chan any, 3)
		fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			if in.ID == "2/model" || in.Run.ID == "r" {
				return modelAnswer(uint64(10 * in.Turn)), nil
			}
			sent := make(chan struct{})
			fixture.env.RegisterDelayedCallback(func() {
				fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, answers)
				fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r2", Input: 8}, answers)
				fixture.update(runs.UpdatePause, runs.PauseRequest{RunID: "r"}, answers)
				fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: c.cancels})
				close(sent)
			}, 0)
			<-sent
			return modelAnswer(10), nil
		}
		in := input
		in.Queue = []runs.Input{queuedInput("r2")}
		result, last := fixture.run(in)
		wantEqual(t, name+": outcome", result.Outcome, c.want)
		wantEqual(t, name+": last run", last.Run.ID, "r2")
		for _, want := range []any{runs.ErrorNotActive, runs.SteerResult{}, runs.ErrorNotActive} {
			wantEqual(t, name+": answer", <-answers, want)
		}
	}
}

// traceRecorder records the trace contexts that the contexts of model calls have.
type traceRecorder struct {
	interceptor.WorkerInterceptorBase
	traces []any
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (r *traceRecorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &recordingInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, r}
}

type recordingInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	recorder *traceRecorder
}

func (i *recordingInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&recordingOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.recorder})
}

type recordingOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	recorder *traceRecorder
}

func (o *recordingOutbound) ExecuteLocalActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if activityType == runs.ActivityCallModel {
		o.recorder.traces = append(o.recorder.traces, ctx.Value(runs.TraceKey{}))
	}
	return o.Next.ExecuteLocalActivity(ctx, activityType, args...)
}

// TestTraceOfRunOfYoungExecution: each run has the trace of its own request. Those of the request
// that started the execution have the trace of the execution.
func TestTraceOfRunOfYoungExecution(t *testing.T) {
	t.Parallel()
	fixture, recorder := setup(t), &traceRecorder{}
	fixture.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{recorder}})
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10), nil }
	in := input
	in.Trace = "one"
	for _, trace := range []string{"two", "two", "one", ""} {
		next := queuedInput(fmt.Sprint("r", len(in.Queue)))
		next.Trace = trace
		in.Queue = append(in.Queue, next)
	}
	fixture.run(in)
	if want := []any{nil, "two", "two", nil, nil}; !slices.Equal(recorder.traces, want) {
		t.Errorf("traces of the runs = %v, want %v", recorder.traces, want)
	}
}

// TestNotificationsOfYoungExecution: runs of a young execution do not wait for notifications about
// the interrupts of earlier ones. The notifications are sent in order, each once, also after the
// run that has resumed the interrupts.
func TestNotificationsOfYoungExecution(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	fixture.stepsOfLaterRuns()
	var order []string
	fixture.afterFirstEnd(100*time.Millisecond, func() {
		fixture.submit("r2", runs.OnBusyEnqueue)
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), clientResult}}, make(chan any, 1))
	})
	finish := fixture.finish
	fixture.finish = func(local bool) error {
		order = append(order, "end")
		return finish(local)
	}
	failures := 1 // the next attempt follows a second later
	fixture.notify = func(in runs.Notification) error {
		if failures--; failures >= 0 {
			return errors.New("the log is unavailable")
		}
		order = append(order, string(in.Event))
		wantEqual(t, "run of the notification", in.Run.ID, "r")
		return nil
	}
	fixture.run(input)
	if want := []string{"end", "end", "end", "opened", "decided"}; !slices.Equal(order, want) {
		t.Errorf("ends of runs and sent notifications = %v, want %v", order, want)
	}
}

// setupBriefBranches returns a fixture with two branches, of which the busy one is busy for a moment.
func setupBriefBranches(t *testing.T) *branchFixture {
	t.Helper()
	fixture := setupBranches(t, 2)
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		next, err := fixture.advanceOnce(in)
		if next.Sleep > 0 {
			next.Sleep = time.Millisecond
		}
		return next, err
	}
	return fixture
}

// TestCancelBeforeNextRunOfProgram: a cancel that arrives while branches of a program's step end
// with their interrupts cancels the program in the next run.
func TestCancelBeforeNextRunOfProgram(t *testing.T) {
	t.Parallel()
	fixture := setupBriefBranches(t)
	var err error
	programs := workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		err = a.Do(ctx, agents.Step{Name: "all", Parallel: &agents.ParallelStep{Steps: []agents.Step{{Name: "one", Tool: "t"}, {Name: "two", Tool: "t"}}}})
		return err
	}}
	fixture.env.RegisterWorkflowWithOptions(programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
	fixture.onSuspendedAdvance = func() { fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) }
	in := branchInput()
	in.Steps, in.Program = false, "p"
	result, last := fixture.run(in)
	wantEqual(t, "outcome of the first run", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	wantEqual(t, "outcome of the last run", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "the last run continues the first", last.Continues, "r")
	if !temporal.IsCanceledError(err) || len(fixture.calls) != 1 || !strings.Contains(fixture.calls[0], "not made") {
		t.Errorf("error of the step = %v after the calls %q, want a cancel, and a call that is not made", err, fixture.calls)
	}
}

// TestCancelBeforeNextRunOfYoungExecution: a cancel that arrives while branches end with their
// interrupts cancels the next run, in which the branches compensate. It cancels neither the queued
// run after that one nor its interrupts.
func TestCancelBeforeNextRunOfYoungExecution(t *testing.T) {
	t.Parallel()
	fixture := setupBriefBranches(t)
	fixture.onSuspendedAdvance = func() {
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
		fixture.submit("r2", runs.OnBusyEnqueue)
	}
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Run.ID != "r2" {
			return modelAnswer(2000), nil
		}
		answer := modelAnswer(1000, "late")
		answer.Calls[0].Approval, answer.InterruptCount = &fixture.approval, 1
		return answer, nil
	}
	fixture.finish = func(bool) error {
		if fixture.finished[len(fixture.finished)-1].Run.ID == "r2" {
			fixture.env.RegisterDelayedCallback(func() {
				approval := runs.Decision{CallID: "late", Kind: runs.DecisionApprove, Digest: "x", ArgsDigest: "d"}
				fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approval}}, make(chan any, 1))
			}, 10*time.Millisecond)
		}
		return nil
	}
	fixture.run(branchInput())
	var outcomes []runs.Outcome
	for _, end := range fixture.finished {
		outcomes = append(outcomes, end.Outcome)
	}
	if want := []runs.Outcome{runs.OutcomeInterrupt, runs.OutcomeCancelled, runs.OutcomeInterrupt, runs.OutcomeSuccess}; !slices.Equal(outcomes, want) {
		t.Errorf("outcomes of the runs = %v, want %v", outcomes, want)
	}
	if len(fixture.calls) != 2 || !strings.Contains(fixture.calls[0], "not made") || !strings.HasPrefix(fixture.calls[1], "late approve") {
		t.Errorf("calls = %q, want one that is not made, and one that is", fixture.calls)
	}
}
