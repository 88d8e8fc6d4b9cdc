package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// fixture has the activities that the workflow calls.
type fixture struct {
	t     *testing.T
	env   *testsuite.TestWorkflowEnvironment
	model func(in runs.ModelCall) (runs.ModelAnswer, error)
	tool  func(in runs.ToolCall) (runs.ToolAnswer, error)
	// finish is called before the run's end is recorded; its error is the activity's.
	finish func(local bool) error
	// existingEnd is a record of the run's end that exists already; nil = finish writes it.
	existingEnd *runs.FinishResult
	// advance is the advance activity.
	advance func(in runs.AdvanceInput) (runs.AdvanceResult, error)
	// isLogAhead tells whether the log is ahead of the workflow; nil = never.
	isLogAhead func(in runs.LogCheck) bool
	// notify receives each notification; nil accepts all.
	notify func(in runs.Notification) error

	mu            sync.Mutex
	notifications []runs.Notification
	finished      []runs.FinishInput
	modelCalls    []runs.ModelCall
	updates       int
}

var input = runs.Input{
	Run: runs.Ref{Tenant: "default", Thread: "t", ID: "r"}, AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: runs.Limits{Turns: 5, Tokens: 1000, Duration: time.Hour, ParallelTools: 4}}, Input: 1, Digest: "d",
}

// setup returns a fixture with the run workflow and stubs of its activities.
func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	f.env = newEnvironment(t)
	f.env.SetDataConverter(runs.DataConverter())
	workflows.Register(f.env, nil)
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
		f.mu.Lock()
		f.modelCalls = append(f.modelCalls, in)
		f.mu.Unlock()
		return f.model(in)
	}, activity.RegisterOptions{Name: runs.ActivityCallModel})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
		return f.tool(in)
	}, activity.RegisterOptions{Name: runs.ActivityCallTool})
	f.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.FinishInput) (runs.FinishResult, error) {
		f.mu.Lock()
		f.finished = append(f.finished, in)
		f.mu.Unlock()
		if f.finish != nil {
			if err := f.finish(activity.GetInfo(ctx).IsLocalActivity); err != nil {
				return runs.FinishResult{}, err
			}
		}
		if f.existingEnd != nil {
			return *f.existingEnd, nil
		}
		return runs.FinishResult{Outcome: in.Outcome, Code: in.Code, Seq: 99}, nil
	}, activity.RegisterOptions{Name: runs.ActivityFinish})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.LogCheck) (bool, error) {
		return f.isLogAhead != nil && f.isLogAhead(in), nil
	}, activity.RegisterOptions{Name: runs.ActivityIsLogAhead})
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.Notification) error {
		f.mu.Lock()
		f.notifications = append(f.notifications, in)
		f.mu.Unlock()
		if f.notify != nil {
			return f.notify(in)
		}
		return nil
	}, activity.RegisterOptions{Name: runs.ActivityNotify})
	return f
}

// run executes the workflow and returns its result and the last end that was recorded.
func (f *fixture) run(in runs.Input) (runs.Result, runs.FinishInput) {
	f.t.Helper()
	f.env.ExecuteWorkflow(runs.TypeRun, in)
	var result runs.Result
	err := f.env.GetWorkflowResult(&result)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(f.finished) == 0 {
		f.t.Errorf("number of ends of the run = %v, want at least 1", len(f.finished))
	}
	return result, f.finished[len(f.finished)-1]
}

// modelAnswer returns the answer of a model that requests calls of tools.
func modelAnswer(seq uint64, calls ...string) runs.ModelAnswer {
	a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: seq, MessageID: "m"}
	for _, id := range calls {
		a.Calls = append(a.Calls, runs.Call{ID: id, Tool: "tool"})
	}
	return a
}

// TestStepsFollowLastRecord: each step's input has the position after the steps before
// it.
func TestStepsFollowLastRecord(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return modelAnswer(10, "c0", "c1"), nil
		}
		return modelAnswer(30), nil
	}
	var mu sync.Mutex
	var tools []runs.ToolCall
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		mu.Lock()
		defer mu.Unlock()
		tools = append(tools, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 20 + uint64(in.Lane)}, nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "end of the run: record before it", finish.After, 30)
	wantEqual(t, "end of the run: first step", finish.First, "1/model")
	wantEqual(t, "number of unfinished lanes", len(finish.Unfinished), 0)
	step := runs.Step{Run: input.Run, Execution: fixture.modelCalls[0].Execution, Agent: "a", Revision: "v", ID: "1/model", Turn: 1, Name: "model"}
	first := runs.ModelCall{Step: step, Beginning: runs.Beginning{Input: 1, Digest: "d"}, Day: &runs.DayAllowance{}}
	step.ID, step.Turn, step.Closes, step.After = "2/model", 2, "tools", 11
	if diff := cmp.Diff([]runs.ModelCall{first, {Step: step, Day: &runs.DayAllowance{}}}, fixture.modelCalls); diff != "" {
		t.Errorf("the model's steps (-want +got):\n%s", diff)
	}
	slices.SortFunc(tools, func(a, b runs.ToolCall) int { return a.Lane - b.Lane })
	step = runs.Step{Run: input.Run, Execution: step.Execution, Agent: "a", Revision: "v", ID: "1/tools/0", Turn: 1, Name: "tools", Closes: "model", After: 10}
	want := []runs.ToolCall{{Step: step, TurnStepID: "1/tools", CallID: "c0", MessageID: "m"}, {Step: step, TurnStepID: "1/tools", Lane: 1, CallID: "c1", MessageID: "m"}}
	want[1].ID = "1/tools/1"
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("the tools' steps (-want +got):\n%s", diff)
	}
}

// TestCancelDuringModelCall: a cancel waits for the activity's result, which has the position
// of its last record.
func TestCancelDuringModelCall(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	cancelled := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() { fixture.env.CancelWorkflow(); close(cancelled) }, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		<-cancelled
		return runs.ModelAnswer{Outcome: runs.OutcomeCancelled, Seq: 12}, nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "end of the run: outcome", finish.Outcome, runs.OutcomeCancelled)
}

func TestCancelDuringToolCalls(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, "c0", "c1"), nil }
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		a := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 20}
		if in.Lane == 1 {
			a.Outcome = runs.OutcomeCancelled
		}
		return a, nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "end of the run: record before it", finish.After, 11)
	wantEqual(t, "number of unfinished lanes", len(finish.Unfinished), 0)
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 1)
}

func TestCancelBeforeFirstStep(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.env.RegisterDelayedCallback(fixture.env.CancelWorkflow, 0)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		return runs.ModelAnswer{}, temporal.NewCanceledError()
	}
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "end of the run: record before it", finish.After, 0)
	wantEqual(t, "end of the run: input", finish.Input, 1)
}

// TestFencedExecution: an execution that lost its run to another execution ends
// without a record. If a late attempt of its own execution fenced the step, it ends the run.
func TestFencedExecution(t *testing.T) {
	t.Parallel()
	fenced := temporal.NewNonRetryableApplicationError("another step or execution owns the lane", runs.ErrorFenced, nil)
	for _, c := range []struct {
		finish error
		want   runs.Result
	}{
		{fenced, runs.Result{Outcome: runs.OutcomeFenced}},
		{nil, runs.Result{Outcome: runs.OutcomeError, Code: runs.ErrorFenced, Seq: 99}},
	} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return runs.ModelAnswer{}, fenced }
		fixture.finish = func(bool) error { return c.finish }
		if result, _ := fixture.run(input); result != c.want || len(fixture.finished) != 1 {
			t.Errorf("got %+v after %d ends, want %+v", result, len(fixture.finished), c.want)
		}
	}
}

// TestFinishRetriesUntilLogIsAvailable: the log may be unavailable when the run ends. If the local
// activity cannot write the end, a normal activity writes it later.
func TestFinishRetriesUntilLogIsAvailable(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10), nil }
	locals, others := 0, 0
	fixture.finish = func(local bool) error {
		if local {
			locals++
			return errors.New("the log is unavailable")
		}
		if others++; others < 5 {
			return errors.New("the log is unavailable")
		}
		return nil
	}
	result, _ := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "local attempts", locals, 1)
	wantEqual(t, "activity attempts", others, 5)
}

// TestEndNamesLanesOfFailedCalls: the end of a run takes over only the lanes of calls that have not
// ended.
func TestEndNamesLanesOfFailedCalls(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		return modelAnswer(10*uint64(in.Turn), "c0", "c1", "c2"), nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		if in.Turn == 2 && in.Lane == 1 {
			return runs.ToolAnswer{}, temporal.NewNonRetryableApplicationError("no", "tool_unavailable", nil)
		}
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 10*uint64(in.Turn) + 1, Seq: 10*uint64(in.Turn) + 2 + uint64(in.Lane)}, nil
	}
	result, finish := fixture.run(input)
	wantEqual(t, "code", result.Code, "tool_unavailable")
	wantEqual(t, "end of the run: unfinished", finish.Unfinished, []runs.Lane{{Index: 1, After: 13}})
}

// TestManyCallsShareLanes: more calls than lanes share the lanes, in order. Calls beyond the
// first runs.MaxCalls are identified by their index. After a failure or a cancel no further call
// starts.
func TestManyCallsShareLanes(t *testing.T) {
	t.Parallel()
	const calls = 100
	for name, fail := range map[string]int{"all": calls, "one fails": 20} {
		fixture := setup(t)
		fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			if in.Turn > 1 {
				return modelAnswer(1000), nil
			}
			a := modelAnswer(10)
			for i := range runs.MaxCalls {
				a.Calls = append(a.Calls, runs.Call{ID: fmt.Sprint("c", i), Tool: "tool"})
			}
			a.CallCount = calls
			return a, nil
		}
		var mu sync.Mutex
		last := map[int]uint64{}
		seen := map[string]bool{}
		busy, limit := 0, 0
		fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			mu.Lock()
			busy++
			limit = max(limit, busy)
			id := in.CallID
			if id == "" {
				id = fmt.Sprint("c", in.Index)
			}
			wantEqual(t, name+": LaneAfter of "+id, in.LaneAfter, last[in.Lane])
			wantEqual(t, name+": repeated call "+id, seen[id], false)
			wantEqual(t, name+": step of "+id, in.ID, "1/tools/"+id[1:])
			seen[id] = true
			last[in.Lane] = 100 + uint64(len(seen))
			a := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: last[in.Lane]}
			mu.Unlock()
			defer func() { mu.Lock(); busy--; mu.Unlock() }()
			if id == fmt.Sprint("c", fail) {
				return runs.ToolAnswer{}, temporal.NewNonRetryableApplicationError("no", "tool_unavailable", nil)
			}
			return a, nil
		}
		in := input
		in.Limits.ParallelTools = calls
		result, _ := fixture.run(in)
		if limit > runs.MaxLanes {
			t.Errorf("%s: concurrent calls = %v, want at most %v", name, limit, runs.MaxLanes)
		}
		wantEqual(t, name+": number of lanes", len(last), runs.MaxLanes)
		allSucceed := len(seen) == calls && result.Outcome == runs.OutcomeSuccess
		wantEqual(t, name+": all calls succeed", allSucceed, fail == calls)
	}
}

// TestTimeoutAtDurationLimit: the timeouts that bound an activity are the deadline of the run. Another
// timeout fails the step.
func TestTimeoutAtDurationLimit(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[enums.TimeoutType]string{
		enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: runs.CodeLimitDuration, enums.TIMEOUT_TYPE_START_TO_CLOSE: runs.CodeLimitDuration, enums.TIMEOUT_TYPE_HEARTBEAT: "timeout",
	} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			return runs.ModelAnswer{}, temporal.NewTimeoutError(timeout, nil)
		}
		if result, _ := fixture.run(input); result.Code != want {
			t.Errorf("timeout %s: got %+v, want %s", timeout, result, want)
		}
	}
}

// TestSubmitDuringActiveRun: a submission while a run is active. The same run is attached to,
// another run ID is busy, and the same run ID with another input is refused.
func TestSubmitDuringActiveRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	var answered sync.WaitGroup
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { answered.Wait(); return modelAnswer(10), nil }
	answers := map[string]string{}
	offer := func(name string, in runs.SubmitRequest) {
		answered.Add(1)
		var once sync.Once
		say := func(s string) { once.Do(func() { answers[name] = s; answered.Done() }) }
		fixture.env.RegisterDelayedCallback(func() {
			fixture.env.UpdateWorkflow(runs.UpdateSubmit, name, &testsuite.TestUpdateCallback{
				OnAccept: func() {},
				OnReject: func(err error) {
					var app *temporal.ApplicationError
					var active runs.ActiveRun
					if errors.As(err, &app) && app.HasDetails() {
						_ = app.Details(&active)
					}
					say(app.Type() + " " + active.RunID)
				},
				OnComplete: func(result any, err error) {
					if taken, ok := result.(runs.SubmitResult); ok && taken.Attached && err == nil {
						say("attached")
					} else {
						say("completed otherwise")
					}
				},
			}, in)
		}, time.Millisecond)
	}
	offer("same", runs.SubmitRequest{RunID: "r", Digest: "d"})
	offer("reused", runs.SubmitRequest{RunID: "r", Digest: "other"})
	offer("other", runs.SubmitRequest{RunID: "r2", Digest: "d"})
	fixture.run(input)
	if diff := cmp.Diff(map[string]string{"same": "attached", "reused": runs.ErrorRunIDReused + " ", "other": runs.ErrorBusy + " r"}, answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestUsageIsSummedPerModel: the usage of one model is summed, and unknown counts are not zero. A
// provider with a new model name for each call does not make the run's end grow.
func TestUsageIsSummedPerModel(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	one := int64(1)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(uint64(10*in.Turn), "c")
		a.Usage = runs.Usage{Provider: "p", Model: "m", Input: &one}
		if in.Turn > 2 {
			a.Usage.Model = time.Duration(in.Turn).String()
		}
		if in.Turn == 20 {
			a.Calls = nil
		}
		return a, nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2}, nil
	}
	in := input
	in.Limits.Turns = 30
	_, finish := fixture.run(in)
	sum := int64(0)
	for _, u := range finish.Usage {
		sum += *u.Input
	}
	wantEqual(t, "input tokens of the first model", *finish.Usage[0].Input, 2)
	if finish.Usage[0].Output != nil {
		t.Errorf("output tokens of the first model = %+v, want nil", finish.Usage[0].Output)
	}
	wantEqual(t, "tokens", sum, 20)
	wantEqual(t, "number of models in the usage", len(finish.Usage), runs.MaxUsages+1)
}

// TestRunEndsWithClientToolCalls: the server's calls of a turn are made. The run ends with the
// client's calls.
func TestRunEndsWithClientToolCalls(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers, modelCalled := make(chan any, 1), make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, answers)
		close(modelCalled)
	}, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		<-modelCalled
		a := modelAnswer(10, "c0", "c1", "c2")
		a.Calls[0].Client, a.Calls[2].Client, a.InterruptCount = true, true, 2
		return a, nil
	}
	var called []string
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		called = append(called, in.CallID)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	result, finish := fixture.run(input)
	var pending []string
	for _, item := range finish.Interrupts.Items {
		pending = append(pending, item.ID)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "tool calls", called, []string{"c1"})
	wantEqual(t, "pending calls", pending, []string{"c0", "c2"})
	wantEqual(t, "end of the run: steering messages", finish.Steered, []uint64{7})
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 1)
}

// TestUnnamedClientToolCallEndsRun: a client tool call that the answer does not name ends the run.
func TestUnnamedClientToolCallEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(10, "c0")
		a.CallCount, a.InterruptCount = 2, 1
		return a, nil
	}
	result, _ := fixture.run(input)
	wantEqual(t, "code", result.Code, runs.CodeLimitParallelTools)
}
