package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// queueFixture is a fixture whose model makes several calls in one turn. It records when each call
// begins and ends.
type queueFixture struct {
	*fixture
	mu      sync.Mutex
	order   []string // begin and end of each call
	running map[string]bool
	queues  map[string][]string // task queues of each call
	// waitsFor holds a call until another one runs.
	waitsFor map[string]string
	begun    *sync.Cond
}

// setupQueue returns a fixture whose first turn requests the given calls.
func setupQueue(t *testing.T, calls ...runs.Call) *queueFixture {
	t.Helper()
	fixture := &queueFixture{fixture: setup(t), running: map[string]bool{}, queues: map[string][]string{}, waitsFor: map[string]string{}}
	fixture.begun = sync.NewCond(&fixture.mu)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn > 1 {
			return modelAnswer(1000), nil
		}
		a := modelAnswer(10)
		a.Calls = calls
		for _, c := range calls {
			if c.HasQueueOrSequence() {
				a.QueuedOrSequencedCount++
			}
		}
		return a, nil
	}
	fixture.tool = fixture.makeCall
	fixture.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in runs.ToolCall
		if info.ActivityType.Name == runs.ActivityCallTool && args.Get(&in) == nil {
			fixture.mu.Lock()
			fixture.queues[in.CallID] = append(fixture.queues[in.CallID], info.TaskQueue)
			fixture.mu.Unlock()
		}
	})
	return fixture
}

// makeCall notes the begin and the end of a call, which may wait for another one.
func (f *queueFixture) makeCall(in runs.ToolCall) (runs.ToolAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order = append(f.order, "+"+in.CallID)
	f.running[in.CallID] = true
	f.begun.Broadcast()
	for other := f.waitsFor[in.CallID]; other != "" && !f.running[other]; {
		f.begun.Wait()
	}
	f.order = append(f.order, "-"+in.CallID)
	return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 100 + uint64(len(f.order))}, nil
}

// orderOf returns the part of order that belongs to some calls.
func (f *queueFixture) orderOf(ids ...string) []string {
	var order []string
	for _, o := range f.order {
		if slices.Contains(ids, o[1:]) {
			order = append(order, o)
		}
	}
	return order
}

// TestCallsOfSequenceRunInOrder: calls of one sequence run one after another, in the message's
// order. Calls of other sequences and later calls run concurrently.
func TestCallsOfSequenceRunInOrder(t *testing.T) {
	t.Parallel()
	fixture := setupQueue(t,
		runs.Call{ID: "a1", Tool: "a", Sequence: 1}, runs.Call{ID: "a2", Tool: "a", Sequence: 1},
		runs.Call{ID: "b1", Tool: "b", Sequence: 2}, runs.Call{ID: "a3", Tool: "a", Sequence: 1},
		runs.Call{ID: "b2", Tool: "b", Sequence: 2}, runs.Call{ID: "c", Tool: "c"})
	fixture.waitsFor = map[string]string{"a1": "b1", "b1": "c", "c": "a3"} // a call waits for another, so that several run at once
	in := input
	in.Limits.ParallelTools = 6
	result, _ := fixture.run(in)
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if got, want := fixture.orderOf("a1", "a2", "a3"), []string{"+a1", "-a1", "+a2", "-a2", "+a3", "-a3"}; !slices.Equal(got, want) {
		t.Errorf("first sequence: got %v, want %v", got, want)
	}
	if got, want := fixture.orderOf("b1", "b2"), []string{"+b1", "-b1", "+b2", "-b2"}; !slices.Equal(got, want) {
		t.Errorf("second sequence: got %v, want %v", got, want)
	}
}

// TestLongSequenceTakesOneLane: a long sequence leaves the other lanes to the calls after it.
func TestLongSequenceTakesOneLane(t *testing.T) {
	t.Parallel()
	var calls []runs.Call
	for i := range 2 * runs.MaxLanes {
		calls = append(calls, runs.Call{ID: fmt.Sprint("s", i), Tool: "s", Sequence: 1})
	}
	for i := range 2 * runs.MaxLanes {
		calls = append(calls, runs.Call{ID: fmt.Sprint("p", i), Tool: "p"})
	}
	fixture := setupQueue(t, calls...)
	fixture.waitsFor["s0"] = fmt.Sprint("p", 2*runs.MaxLanes-1)
	in := input
	in.Limits.ParallelTools = len(calls)
	result, _ := fixture.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of begins and ends", len(fixture.order), 2*len(calls))
}

// TestApprovedCallsOfSequence: approved calls of one sequence run one after another as well.
func TestApprovedCallsOfSequence(t *testing.T) {
	t.Parallel()
	callWithApproval := func(id string) runs.Call {
		return runs.Call{ID: id, Tool: "a", Sequence: 1, Queue: "till", Approval: &runs.Approval{ArgsDigest: "x"}}
	}
	queues := setupQueue(t, runs.Call{ID: "a0", Tool: "a", Sequence: 1, Queue: "till"}, callWithApproval("a1"), callWithApproval("a2"), callWithApproval("a3"))
	model := queues.model
	queues.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a, err := model(in)
		if in.Turn == 1 {
			a.InterruptCount = 3
		}
		return a, err
	}
	h := &heldFixture{fixture: queues.fixture}
	h.env.RegisterActivityWithOptions(func(context.Context, runs.AnnounceInterrupts) (uint64, error) { return 15, nil }, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	approved := func(id string) runs.Decision {
		return runs.Decision{CallID: id, Kind: runs.DecisionApprove, Digest: "d", ArgsDigest: "x"}
	}
	rejected := runs.Decision{CallID: "a2", Kind: runs.DecisionReject, Digest: "r"}
	h.decide(time.Minute, approved("a3"), rejected, approved("a1"))
	result, _ := queues.run(heldInput())
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if want := []string{"+a0", "-a0", "+a1", "-a1", "+a2", "-a2", "+a3", "-a3"}; !slices.Equal(queues.order, want) {
		t.Errorf("calls: got %v, want %v", queues.order, want)
	}
	for id, want := range map[string]string{"a0": "till", "a1": "till", "a2": runs.TaskQueue, "a3": "till"} {
		if got := queues.queues[id]; len(got) != 1 || (got[0] == "till") != (want == "till") {
			t.Errorf("task queues of %s: got %v, want %s", id, got, want)
		}
	}
}

// TestTaskQueuesWithoutWorkers: a call to a task queue without workers waits, and then the run
// fails. A call to a task queue with busy workers is sent again.
func TestTaskQueuesWithoutWorkers(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"busy": true, "no workers": false} {
		fixture := setupQueue(t, runs.Call{ID: "a", Tool: "a", Queue: "till"}, runs.Call{ID: "b", Tool: "b"})
		sent, looks := 0, []runs.AwaitQueue{}
		fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			if in.CallID == "a" {
				if sent++; sent < 3 {
					return runs.ToolAnswer{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
				}
			}
			return fixture.makeCall(in)
		}
		fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AwaitQueue) error {
			if looks = append(looks, in); !served {
				return temporal.NewNonRetryableApplicationError("none", "tool_unavailable", nil)
			}
			return nil
		}, activity.RegisterOptions{Name: runs.ActivityAwaitQueue})
		result, finish := fixture.run(input)
		if served {
			wantEqual(t, name+": outcome", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, name+": number of calls sent", sent, 3)
			mustEqual(t, name+": number of queues waited for", len(looks), 2)
			wantEqual(t, name+": first queue waited for", looks[0].Queue, "till")
			continue
		}
		wantEqual(t, name+": code", result.Code, "tool_unavailable")
		wantEqual(t, name+": number of calls sent", sent, 1)
		wantEqual(t, name+": number of unfinished lanes", len(finish.Unfinished), 1)
	}
}

// TestUnnamedQueuedCallEndsRun: a call whose task queue the answer does not name ends the
// run.
func TestUnnamedQueuedCallEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(10)
		a.CallCount, a.QueuedOrSequencedCount = 2, 1
		return a, nil
	}
	result, _ := fixture.run(input)
	wantEqual(t, "code", result.Code, runs.CodeLimitParallelTools)
}
