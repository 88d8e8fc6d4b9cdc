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

// queueFixture is a fixture whose model makes some calls at once, and notes what becomes of them.
type queueFixture struct {
	*fixture
	mu       sync.Mutex
	order    []string // begin and end of each call
	underWay map[string]bool
	queues   map[string][]string // that a call was sent to
	// meet holds a call until another one is under way.
	meet map[string]string
	met  *sync.Cond
}

func setupQueue(t *testing.T, calls ...runs.Call) *queueFixture {
	t.Helper()
	p := &queueFixture{fixture: setup(t), underWay: map[string]bool{}, queues: map[string][]string{}, meet: map[string]string{}}
	p.met = sync.NewCond(&p.mu)
	p.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn > 1 {
			return says(1000), nil
		}
		a := says(10)
		a.Calls = calls
		for _, c := range calls {
			if c.Placed() {
				a.OrderedCount++
			}
		}
		return a, nil
	}
	p.tool = p.perform
	p.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in runs.ToolCall
		if info.ActivityType.Name == runs.ActivityCallTool && args.Get(&in) == nil {
			p.mu.Lock()
			p.queues[in.CallID] = append(p.queues[in.CallID], info.TaskQueue)
			p.mu.Unlock()
		}
	})
	return p
}

func (p *queueFixture) perform(in runs.ToolCall) (runs.ToolAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = append(p.order, "+"+in.CallID)
	p.underWay[in.CallID] = true
	p.met.Broadcast()
	for other := p.meet[in.CallID]; other != "" && !p.underWay[other]; {
		p.met.Wait()
	}
	p.order = append(p.order, "-"+in.CallID)
	return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 100 + uint64(len(p.order))}, nil
}

// of returns the part of the order that is about some calls.
func (p *queueFixture) of(ids ...string) []string {
	var order []string
	for _, o := range p.order {
		if slices.Contains(ids, o[1:]) {
			order = append(order, o)
		}
	}
	return order
}

// Calls of one sequence are made one after another, in the order of the message, while others run
// beside them: those of other sequences too, and those behind them.
func TestSequencesOfCalls(t *testing.T) {
	t.Parallel()
	p := setupQueue(t,
		runs.Call{ID: "a1", Tool: "a", Sequence: 1}, runs.Call{ID: "a2", Tool: "a", Sequence: 1},
		runs.Call{ID: "b1", Tool: "b", Sequence: 2}, runs.Call{ID: "a3", Tool: "a", Sequence: 1},
		runs.Call{ID: "b2", Tool: "b", Sequence: 2}, runs.Call{ID: "c", Tool: "c"})
	p.meet = map[string]string{"a1": "b1", "b1": "c", "c": "a3"} // the last one is there for long
	in := input
	in.Limits.ParallelTools = 6
	if result, _ := p.run(in); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("%+v", result)
	}
	if got, want := p.of("a1", "a2", "a3"), []string{"+a1", "-a1", "+a2", "-a2", "+a3", "-a3"}; !slices.Equal(got, want) {
		t.Errorf("one sequence is made as %v", got)
	}
	if got, want := p.of("b1", "b2"), []string{"+b1", "-b1", "+b2", "-b2"}; !slices.Equal(got, want) {
		t.Errorf("the other is made as %v", got)
	}
}

// A long sequence does not keep lanes from the calls behind it.
func TestALongSequenceTakesOneLane(t *testing.T) {
	t.Parallel()
	var calls []runs.Call
	for i := range 2 * runs.MaxLanes {
		calls = append(calls, runs.Call{ID: fmt.Sprint("s", i), Tool: "s", Sequence: 1})
	}
	for i := range 2 * runs.MaxLanes {
		calls = append(calls, runs.Call{ID: fmt.Sprint("p", i), Tool: "p"})
	}
	p := setupQueue(t, calls...)
	p.meet["s0"] = fmt.Sprint("p", 2*runs.MaxLanes-1)
	in := input
	in.Limits.ParallelTools = len(calls)
	if result, _ := p.run(in); result.Outcome != runs.OutcomeSuccess || len(p.order) != 2*len(calls) {
		t.Errorf("%+v after %v", result, p.order)
	}
}

// Calls that people approved take their turns as well: they do not run at the same time.
func TestApprovedCallsTakeTurns(t *testing.T) {
	t.Parallel()
	asked := func(id string) runs.Call {
		return runs.Call{ID: id, Tool: "a", Sequence: 1, Queue: "till", Approval: &runs.Approval{Args: "x"}}
	}
	p := setupQueue(t, runs.Call{ID: "a0", Tool: "a", Sequence: 1, Queue: "till"}, asked("a1"), asked("a2"), asked("a3"))
	model := p.model
	p.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a, err := model(in)
		if in.Turn == 1 {
			a.WaitCount = 3
		}
		return a, err
	}
	h := &heldFixture{fixture: p.fixture}
	h.env.RegisterActivityWithOptions(func(context.Context, runs.AnnounceInterrupts) (uint64, error) { return 15, nil }, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	approved := func(id string) runs.Decision {
		return runs.Decision{CallID: id, Kind: runs.DecisionApprove, Digest: "d", Args: "x"}
	}
	rejected := runs.Decision{CallID: "a2", Kind: runs.DecisionReject, Digest: "r"}
	h.decide(time.Minute, approved("a3"), rejected, approved("a1"))
	if result, _ := p.run(heldInput()); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("%+v", result)
	}
	if want := []string{"+a0", "-a0", "+a1", "-a1", "+a2", "-a2", "+a3", "-a3"}; !slices.Equal(p.order, want) {
		t.Errorf("they are made as %v", p.order)
	}
	for id, want := range map[string]string{"a0": "till", "a1": "till", "a2": runs.TaskQueue, "a3": "till"} {
		if got := p.queues[id]; len(got) != 1 || (got[0] == "till") != (want == "till") {
			t.Errorf("%s was sent to %v, want %s", id, got, want)
		}
	}
}

// A call that goes to a task queue which nobody serves is waited for, then the run fails; one whose
// workers are only busy is sent again.
func TestTaskQueuesThatNobodyServes(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"busy": true, "nobody": false} {
		p := setupQueue(t, runs.Call{ID: "a", Tool: "a", Queue: "till"}, runs.Call{ID: "b", Tool: "b"})
		sent, looks := 0, []runs.AwaitQueue{}
		p.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			if in.CallID == "a" {
				if sent++; sent < 3 {
					return runs.ToolAnswer{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
				}
			}
			return p.perform(in)
		}
		p.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AwaitQueue) error {
			if looks = append(looks, in); !served {
				return temporal.NewNonRetryableApplicationError("none", "tool_unavailable", nil)
			}
			return nil
		}, activity.RegisterOptions{Name: runs.ActivityAwaitQueue})
		result, finish := p.run(input)
		if served {
			if result.Outcome != runs.OutcomeSuccess || sent != 3 || len(looks) != 2 || looks[0].Queue != "till" {
				t.Errorf("%s: %+v after %d times and %+v", name, result, sent, looks)
			}
			continue
		}
		if result.Code != "tool_unavailable" || sent != 1 || len(finish.Unfinished) != 1 {
			t.Errorf("%s: %+v after %d times and %+v, finished with %+v", name, result, sent, looks, finish)
		}
	}
}

// A call whose place the answer does not tell is not made anywhere else.
func TestCallsWithoutTheirPlaceAreNotMade(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(10)
		a.CallCount, a.OrderedCount = 2, 1
		return a, nil
	}
	if result, _ := w.run(input); result.Code != runs.CodeLimitParallelTools {
		t.Errorf("%+v", result)
	}
}
