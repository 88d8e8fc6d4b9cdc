package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/workflows"
)

// panel is an answer whose calls c0, c1, … wait for two people each.
func panel(calls int) workflows.ModelAnswer {
	a := says(10)
	for i := range calls {
		a.Calls = append(a.Calls, workflows.Call{ID: fmt.Sprint("c", i), Tool: "tool", Approval: &workflows.Approval{Rule: 1, Args: "args", Policy: "policy", Quorum: 2}})
	}
	a.WaitCount = calls
	return a
}

// says is what a person says about a call; the same words have the same digest.
func (p person) says(verdict workflows.Verdict, call, args string) workflows.Decision {
	return workflows.Decision{CallID: call, Verdict: verdict, Digest: fmt.Sprint(p, verdict, call, args), Input: p.proposal(), Args: args, By: string(p)}
}

type person string

// proposal stands for what the person said in the log.
func (p person) proposal() uint64 {
	if p == "" {
		return 50
	}
	return 50 + uint64(p[0])
}

func (p person) approves(call string) workflows.Decision {
	return p.says(workflows.VerdictApprove, call, "")
}

const (
	ann person = "ann"
	bob person = "bob"
	eve person = "eve"
)

// decideInTurn sends decisions one by one, a second apart, and returns the results in that order when the
// run has continued with what it returns.
func (w *world) decideInTurn(decisions ...workflows.Decision) func() []workflows.DecisionResult {
	answers := make(chan any, len(decisions))
	for i, d := range decisions {
		w.env.RegisterDelayedCallback(func() {
			w.update(workflows.UpdateDecide, workflows.Decide{Decisions: []workflows.Decision{d}}, answers)
		}, time.Duration(i+1)*time.Second)
	}
	return func() []workflows.DecisionResult {
		close(answers)
		var results []workflows.DecisionResult
		for a := range answers {
			results = append(results, a.(workflows.Decided).Results...)
		}
		return results
	}
}

func panelWorld(t *testing.T, calls int) *world {
	t.Helper()
	w := newWorld(t)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return panel(calls), nil }
	return w
}

// A call is made when as many different people have approved as have to. Nobody counts twice, whoever
// repeats themselves is told so, and nobody approves and then says otherwise.
func TestVotesOfDifferentPeople(t *testing.T) {
	t.Parallel()
	w := panelWorld(t, 1)
	reconsiders := ann.says(workflows.VerdictEdit, "c0", "fewer")
	results := w.decideInTurn(ann.approves("c0"), ann.approves("c0"), reconsiders, bob.approves("c0"))
	next := w.continued(input)
	vote := ann.approves("c0")
	vote.CallID = ""
	want := []workflows.DecisionResult{
		{Missing: 1}, {Recorded: &vote, Missing: 1}, {Error: workflows.ErrorDecided, Recorded: &vote}, {},
	}
	if diff := cmp.Diff(want, results()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	made := bob.approves("c0")
	made.Args = "args"
	if diff := cmp.Diff(&made, next.Resume.Calls[0].Decision); diff != "" {
		t.Errorf("the decision (-want +got):\n%s", diff)
	}

	// What was said is told as long as the run that goes on does.
	again := newWorld(t)
	late, release := make(chan any, 1), make(chan struct{})
	again.env.RegisterDelayedCallback(func() {
		again.update(workflows.UpdateDecide, workflows.Decide{Decisions: []workflows.Decision{ann.approves("c0"), reconsiders, eve.approves("c0")}}, late)
		close(release)
	}, time.Millisecond)
	var toolCall workflows.ToolCall
	again.tool = func(in workflows.ToolCall) (workflows.ToolAnswer, error) {
		toolCall = in
		return workflows.ToolAnswer{Outcome: workflows.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	again.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { <-release; return says(30), nil }
	again.run(next)
	want = []workflows.DecisionResult{{Recorded: &made}, {Error: workflows.ErrorDecided, Recorded: &made}, {Error: workflows.ErrorDecided, Recorded: &made}}
	if diff := cmp.Diff(workflows.Decided{Results: want}, <-late); diff != "" {
		t.Errorf("results afterwards (-want +got):\n%s", diff)
	}
	if !cmp.Equal(toolCall.Votes, []workflows.Vote{{Digest: vote.Digest, Input: ann.proposal()}}) || toolCall.Decision.Input != bob.proposal() {
		t.Errorf("the call is made as %+v", toolCall)
	}
}

// Nobody in particular is one person.
func TestTheAnonymousAreOne(t *testing.T) {
	t.Parallel()
	w := panelWorld(t, 1)
	results := w.decideInTurn(person("").approves("c0"), person("").approves("c0"), ann.approves("c0"))
	w.continued(input)
	if got := results(); got[0].Missing != 1 || got[1].Missing != 1 || got[1].Recorded == nil || got[2] != (workflows.DecisionResult{}) {
		t.Errorf("results %+v", got)
	}
}

// Who says that a call may not be made decides that, also who had approved.
func TestOneIsEnoughToRefuse(t *testing.T) {
	t.Parallel()
	for _, verdict := range []workflows.Verdict{workflows.VerdictReject, workflows.VerdictAnswer, workflows.VerdictCancel} {
		w := panelWorld(t, 1)
		results := w.decideInTurn(ann.approves("c0"), ann.says(verdict, "c0", ""))
		next := w.continued(input)
		if got := results(); got[1] != (workflows.DecisionResult{}) || next.Resume.Calls[0].Decision.Verdict != verdict {
			t.Errorf("%s: results %+v, it goes on with %+v", verdict, got, next.Resume.Calls[0].Decision)
		}
	}
}

// Votes for other arguments are other votes. There is one edit at a time to vote about.
func TestVotesAreForArguments(t *testing.T) {
	t.Parallel()
	w := panelWorld(t, 1)
	results := w.decideInTurn(
		ann.approves("c0"), bob.says(workflows.VerdictEdit, "c0", "fewer"), eve.says(workflows.VerdictEdit, "c0", "more"),
		eve.says(workflows.VerdictEdit, "c0", "fewer"))
	next := w.continued(input)
	got := results()
	if got[0].Missing != 1 || got[1].Missing != 1 || got[2].Error != workflows.ErrorOtherEdit || got[2].Recorded.Args != "fewer" || got[3] != (workflows.DecisionResult{}) {
		t.Errorf("results %+v", got)
	}
	d := next.Resume.Calls[0].Decision
	if d.Args != "fewer" || d.Verdict != workflows.VerdictEdit {
		t.Errorf("the decision is %+v", d)
	}
}

// Votes come in an input too. They count even if they are too few for it to go on.
func TestVotesInAnInput(t *testing.T) {
	t.Parallel()
	w := panelWorld(t, 2)
	answers := make(chan any, 4)
	offer := func(id string, who person, onBusy workflows.OnBusy) {
		in := waiting(id)
		in.Token = "token-" + id
		w.update(workflows.UpdateSubmit, workflows.Submit{
			RunID: id, Digest: in.Digest, OnBusy: onBusy, Offer: &in, Decisions: []workflows.Decision{who.approves("c0"), who.says(workflows.VerdictReject, "c1", "")},
		}, answers)
	}
	w.env.RegisterDelayedCallback(func() {
		offer("r2", ann, "")
		offer("r2", ann, "")
		offer("r3", bob, "")
	}, time.Second)
	next := w.continued(input)
	for i, want := range []workflows.Submitted{{Open: true}, {Open: true}, {Queued: true}} {
		if got := <-answers; got != want {
			t.Errorf("offer %d: %+v, want %+v", i, got, want)
		}
	}
	if next.Run.ID != "r3" || len(next.Queue) != 0 {
		t.Errorf("it goes on with %+v", next)
	}
	if c := next.Resume.Calls; c[0].Decision.By != "bob" || c[1].Decision.By != "ann" || c[1].Decision.Verdict != workflows.VerdictReject {
		t.Errorf("decided is %+v and %+v", c[0].Decision, c[1].Decision)
	}
}

// A decision to be remembered makes the other calls under its rule as well. It is one only if all who made
// the quorum said so.
func TestRememberReleasesTheOthers(t *testing.T) {
	t.Parallel()
	remembers := func(p person, call string) workflows.Decision {
		d := p.approves(call)
		d.Remember = true
		return d
	}
	w := newWorld(t)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) {
		a := panel(5)
		a.Calls[2].Tool, a.Calls[3].Approval.Rule, a.Calls[4].Approval.Args = "other", 7, "more"
		return a, nil
	}
	results := w.decideInTurn(
		remembers(ann, "c0"), remembers(bob, "c0"),
		remembers(ann, "c2"), bob.approves("c2"), ann.approves("c3"), remembers(bob, "c3"))
	in := input
	in.Limits.ParallelTools = 8
	next := w.continued(in)
	for i, r := range results() {
		if r.Error != "" {
			t.Errorf("decision %d: %+v", i, r)
		}
	}
	for i, want := range []struct {
		args     string
		remember bool
	}{{"args", true}, {"args", true}, {"args", false}, {"args", false}, {"more", true}} {
		d := next.Resume.Calls[i].Decision
		if d.CallID != fmt.Sprint("c", i) || d.Verdict != workflows.VerdictApprove || d.Args != want.args || d.Remember != want.remember || d.Input != bob.proposal() {
			t.Errorf("call %d is made by %+v", i, d)
		}
	}
	again := newWorld(t)
	policies := map[string]string{}
	again.tool = func(in workflows.ToolCall) (workflows.ToolAnswer, error) {
		again.mu.Lock()
		defer again.mu.Unlock()
		policies[in.CallID] = in.Remember
		return workflows.ToolAnswer{Outcome: workflows.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	again.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(30), nil }
	again.run(next)
	if diff := cmp.Diff(map[string]string{"c0": "policy", "c1": "policy", "c2": "", "c3": "", "c4": "policy"}, policies); diff != "" {
		t.Errorf("what is remembered (-want +got):\n%s", diff)
	}
}

// What is said about a call goes on as one payload, whoever says what.
func TestVotesFitWhatGoesOn(t *testing.T) {
	t.Parallel()
	for quorum, most := range map[int]int{2: 6, 8: 2} {
		for _, calls := range []int{most, workflows.MaxWaits} {
			w := newWorld(t)
			w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) {
				a := panel(calls)
				for i := range a.Calls {
					a.Calls[i].ID = fmt.Sprintf("call_%026d", i)
					a.Calls[i].Approval.Quorum, a.Calls[i].Approval.Args = quorum, fmt.Sprintf("%032d", i)
					a.Calls[i].Approval.Policy, a.Calls[i].Approval.Remind = "0123456789abcdef", time.Hour
				}
				return a, nil
			}
			in := input
			in.Limits.ParallelTools = 100
			w.env.RegisterDelayedCallback(func() {
				for i := range calls {
					for voter := range quorum - 1 {
						for _, args := range []string{"", fmt.Sprintf("%032d", 99)} {
							p := person(fmt.Sprintf("%015d%s", voter, args[:min(1, len(args))]))
							d := p.says(workflows.VerdictEdit, fmt.Sprintf("call_%026d", i), args)
							d.Digest, d.Input = fmt.Sprintf("%032d", voter), 1<<40
							w.update(workflows.UpdateDecide, workflows.Decide{Decisions: []workflows.Decision{d}}, make(chan any, 1))
						}
					}
				}
			}, time.Second)
			w.env.ExecuteWorkflow(workflows.TypeRun, in)
			if end := w.finished[0]; (end.Code == workflows.CodeLimitParallelTools) != (calls > most) {
				t.Errorf("quorum %d, %d calls: the run is finished with %s", quorum, calls, end.Code)
			}
			if calls > most {
				continue
			}
			var parked workflows.Parked
			continuedAs(t, w.env.GetWorkflowError(), workflows.TypeParked, &parked)
			if n := len(parked.Waits.Calls[calls-1].Votes); n != 2*(quorum-1) {
				t.Errorf("quorum %d: %d votes are kept", quorum, n)
			}
		}
	}
}
