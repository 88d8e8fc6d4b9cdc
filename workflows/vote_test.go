package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// quorumAnswer returns an answer whose calls c0, c1, … wait for two approvals each.
func quorumAnswer(calls int) runs.ModelAnswer {
	a := modelAnswer(10)
	for i := range calls {
		a.Calls = append(a.Calls, runs.Call{ID: fmt.Sprint("c", i), Tool: "tool", Approval: &runs.Approval{Rule: 1, ArgsDigest: "args", RuleDigest: "policy", Quorum: 2}})
	}
	a.InterruptCount = calls
	return a
}

// decisionAbout returns a person's decision about a call. Equal decisions have equal digests.
func (p person) decisionAbout(kind runs.DecisionKind, call, args string) runs.Decision {
	return runs.Decision{CallID: call, Kind: kind, Digest: fmt.Sprint(p, kind, call, args), Proposal: p.proposal(), ArgsDigest: args, By: string(p)}
}

type person string

// proposal is the sequence of the person's decision in the log.
func (p person) proposal() uint64 {
	if p == "" {
		return 50
	}
	return 50 + uint64(p[0])
}

// approvalOf returns the approval of a call.
func (p person) approvalOf(call string) runs.Decision {
	return p.decisionAbout(runs.DecisionApprove, call, "")
}

const (
	ann person = "ann"
	bob person = "bob"
	eve person = "eve"
)

// decideOneByOne sends decisions one by one, a second apart. The function it returns gives the
// results in that order, after the run has continued.
func (f *fixture) decideOneByOne(decisions ...runs.Decision) func() []runs.DecisionResult {
	answers := make(chan any, len(decisions))
	for i, d := range decisions {
		f.env.RegisterDelayedCallback(func() {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{d}}, answers)
		}, time.Duration(i+1)*time.Second)
	}
	return func() []runs.DecisionResult {
		close(answers)
		var results []runs.DecisionResult
		for a := range answers {
			results = append(results, a.(runs.DecideResult).Results...)
		}
		return results
	}
}

// setupQuorum returns a fixture whose calls need two approvals each.
func setupQuorum(t *testing.T, calls int) *fixture {
	t.Helper()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(calls), nil }
	return fixture
}

// tallies returns the tallies of a call: votes for the model's arguments, and for edited ones.
func tallies(original int, edits ...int) []runs.Tally {
	tallies := []runs.Tally{{Kind: runs.DecisionApprove, ArgsDigest: "args", Votes: original, Missing: 2 - original}}
	for _, votes := range edits {
		tallies = append(tallies, runs.Tally{Kind: runs.DecisionEdit, ArgsDigest: "fewer", Votes: votes, Missing: 2 - votes})
	}
	return tallies
}

// TestQuorumCountsDifferentPeople: a quorum counts different people who vote for the same
// arguments. A person may change their vote until the decision, and only the last vote counts. The
// same vote again changes nothing.
func TestQuorumCountsDifferentPeople(t *testing.T) {
	t.Parallel()
	fixture := setupQuorum(t, 1)
	edits := ann.decisionAbout(runs.DecisionEdit, "c0", "fewer")
	results := fixture.decideOneByOne(ann.approvalOf("c0"), ann.approvalOf("c0"), edits, bob.approvalOf("c0"), edits, ann.approvalOf("c0"))
	next := fixture.runUntilContinued(input)
	approved, edited, bobs := ann.approvalOf("c0"), edits, bob.approvalOf("c0")
	approved.CallID, edited.CallID, bobs.CallID = "", "", ""
	want := []runs.DecisionResult{
		{Missing: 1, Tallies: tallies(1)},
		{Missing: 1, Tallies: tallies(1), Recorded: &approved},
		{Missing: 1, Tallies: tallies(0, 1)},
		{Missing: 1, Tallies: tallies(1, 1)},
		{Missing: 1, Tallies: tallies(1, 1), Recorded: &edited},
		{Resolved: true},
	}
	if diff := cmp.Diff(want, results()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	made := ann.approvalOf("c0")
	made.ArgsDigest = "args"
	if diff := cmp.Diff(&made, next.Resume.Items[0].Decision); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]runs.Decision{bobs}, next.Resume.Items[0].Votes); diff != "" {
		t.Errorf("other votes (-want +got):\n%s", diff)
	}

	// The result of each vote stays available while the next run is active.
	nextFixture := setup(t)
	late, release := make(chan any, 1), make(chan struct{})
	nextFixture.env.RegisterDelayedCallback(func() {
		nextFixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{bob.approvalOf("c0"), edits, eve.approvalOf("c0")}}, late)
		close(release)
	}, time.Millisecond)
	var toolCall runs.ToolCall
	nextFixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		toolCall = in
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-release; return modelAnswer(30), nil }
	nextFixture.run(next)
	want = []runs.DecisionResult{{Recorded: &made, Resolved: true}, {Error: runs.ErrorDecided, Recorded: &made}, {Error: runs.ErrorDecided, Recorded: &made}}
	if diff := cmp.Diff(runs.DecideResult{Results: want}, <-late); diff != "" {
		t.Errorf("results in the next run (-want +got):\n%s", diff)
	}
	wantEqual(t, "tool call: votes", toolCall.Votes, []runs.Vote{{Digest: bobs.Digest, Proposal: bob.proposal()}})
	wantEqual(t, "proposal of the call's decision", toolCall.Decision.Proposal, ann.proposal())
}

// TestAnonymousCallersShareOneVote: all anonymous callers count as one person.
func TestAnonymousCallersShareOneVote(t *testing.T) {
	t.Parallel()
	fixture := setupQuorum(t, 1)
	results := fixture.decideOneByOne(person("").approvalOf("c0"), person("").approvalOf("c0"), ann.approvalOf("c0"))
	fixture.runUntilContinued(input)
	got := results()
	mustEqual(t, "missing votes after the first vote", got[0].Missing, 1)
	mustEqual(t, "missing votes after the second vote", got[1].Missing, 1)
	if got[1].Recorded == nil {
		t.Fatal("results: [1].Recorded = nil, want a value")
	}
	wantEqual(t, "result of the third vote", got[2], runs.DecisionResult{Resolved: true})
}

// TestOneRejectionResolves: one rejection decides a call, also from a person who has approved it.
func TestOneRejectionResolves(t *testing.T) {
	t.Parallel()
	for _, kind := range []runs.DecisionKind{runs.DecisionReject, runs.DecisionAnswer, runs.DecisionCancel} {
		fixture := setupQuorum(t, 1)
		results := fixture.decideOneByOne(ann.approvalOf("c0"), ann.decisionAbout(kind, "c0", ""))
		next := fixture.runUntilContinued(input)
		item := next.Resume.Items[0]
		got := results()
		wantEqual(t, fmt.Sprintf("%s: second result", kind), got[1], runs.DecisionResult{Resolved: true})
		wantEqual(t, fmt.Sprintf("%s: decision kind", kind), item.Decision.Kind, kind)
		wantEqual(t, fmt.Sprintf("%s: number of votes", kind), len(item.Votes), 0)
	}
}

// TestVotesCountPerArguments: votes for different arguments do not add up. There is one edit at a
// time to vote for. It ends with its last vote.
func TestVotesCountPerArguments(t *testing.T) {
	t.Parallel()
	fixture := setupQuorum(t, 1)
	results := fixture.decideOneByOne(
		ann.approvalOf("c0"), bob.decisionAbout(runs.DecisionEdit, "c0", "fewer"), eve.decisionAbout(runs.DecisionEdit, "c0", "more"),
		bob.decisionAbout(runs.DecisionEdit, "c0", "more"), bob.decisionAbout(runs.DecisionEdit, "c0", "fewer"), eve.decisionAbout(runs.DecisionEdit, "c0", "fewer"))
	next := fixture.runUntilContinued(input)
	got := results()
	wantEqual(t, "error of the other edit", got[2].Error, runs.ErrorOtherEdit)
	wantEqual(t, "arguments of the recorded edit", got[2].Recorded.ArgsDigest, "fewer")
	wantEqual(t, "error of the vote for the other arguments", got[3].Error, "")
	wantEqual(t, "arguments of the second tally", got[3].Tallies[1].ArgsDigest, "more")
	for i, want := range map[int]runs.DecisionResult{0: {Missing: 1, Tallies: tallies(1)}, 1: {Missing: 1, Tallies: tallies(1, 1)}, 4: {Missing: 1, Tallies: tallies(1, 1)}, 5: {Resolved: true}} {
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("result %d (-want +got):\n%s", i, diff)
		}
	}
	d := next.Resume.Items[0].Decision
	wantEqual(t, "decision: arguments", d.ArgsDigest, "fewer")
	wantEqual(t, "decision: kind", d.Kind, runs.DecisionEdit)
}

// TestInputWithVotes: an input may bring votes. They count even if they are too few to continue.
func TestInputWithVotes(t *testing.T) {
	t.Parallel()
	fixture := setupQuorum(t, 2)
	answers := make(chan any, 4)
	offer := func(id string, who person, onBusy runs.OnBusy) {
		in := queuedInput(id)
		in.Token = "token-" + id
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{
			RunID: id, Digest: in.Digest, OnBusy: onBusy, Offer: &in, Decisions: []runs.Decision{who.approvalOf("c0"), who.decisionAbout(runs.DecisionReject, "c1", "")},
		}, answers)
	}
	fixture.env.RegisterDelayedCallback(func() {
		offer("r2", ann, "")
		offer("r2", ann, "")
		offer("r3", bob, "")
	}, time.Second)
	next := fixture.runUntilContinued(input)
	for i, want := range []runs.SubmitResult{{Open: true}, {Open: true}, {Queued: true}} {
		if got := <-answers; got != want {
			t.Errorf("submission %d: got %+v, want %+v", i, got, want)
		}
	}
	wantEqual(t, "next run: run ID", next.Run.ID, "r3")
	wantEqual(t, "next run: number of queued runs", len(next.Queue), 0)
	wantEqual(t, "approver of the first call", next.Resume.Items[0].Decision.By, "bob")
	wantEqual(t, "approver of the second call", next.Resume.Items[1].Decision.By, "ann")
	wantEqual(t, "kind of the second call's decision", next.Resume.Items[1].Decision.Kind, runs.DecisionReject)
}

// TestRememberedApprovalResolvesOthers: an approval with a scope also approves the other waiting
// calls under its rule that the scope covers. The narrowest scope in the quorum counts. A quorum
// with a vote without a scope has none.
func TestRememberedApprovalResolvesOthers(t *testing.T) {
	t.Parallel()
	const arguments, tool = runs.RememberArguments, runs.RememberTool
	remembers := func(p person, call string, scope runs.RememberScope) runs.Decision {
		d := p.approvalOf(call)
		d.Remember = scope
		return d
	}
	type made struct {
		Args     string
		Remember runs.RememberScope
	}
	for name, c := range map[string]struct {
		first, second runs.RememberScope
		want          [5]made // "" is a call that still waits
	}{
		"tool":      {tool, tool, [5]made{{"args", tool}, {"args", tool}, {}, {}, {"more", tool}}},
		"arguments": {arguments, arguments, [5]made{{"args", arguments}, {"args", arguments}}},
		"narrowest": {tool, arguments, [5]made{{"args", arguments}, {"args", arguments}}},
		"narrower":  {arguments, tool, [5]made{{"args", arguments}, {"args", arguments}}},
		"one alone": {tool, "", [5]made{{Args: "args"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t)
			fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
				a := quorumAnswer(5)
				a.Calls[2].Tool, a.Calls[3].Approval.Rule, a.Calls[4].Approval.ArgsDigest = "other", 7, "more"
				return a, nil
			}
			decisions := []runs.Decision{remembers(ann, "c0", c.first), remembers(bob, "c0", c.second)}
			for i, m := range c.want {
				if m.Args == "" {
					decisions = append(decisions, eve.decisionAbout(runs.DecisionReject, fmt.Sprint("c", i), ""))
				}
			}
			results := fixture.decideOneByOne(decisions...)
			in := input
			in.Limits.ParallelTools = 8
			next := fixture.runUntilContinued(in)
			for i, r := range results() {
				wantEqual(t, fmt.Sprintf("decision %d: error", i), r.Error, "")
			}
			var got [5]made
			for i, call := range next.Resume.Items {
				if d := call.Decision; d.Kind == runs.DecisionApprove && d.CallID == fmt.Sprint("c", i) && d.Proposal == bob.proposal() {
					got[i] = made{d.ArgsDigest, d.Remember}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("approved calls (-want +got):\n%s", diff)
			}
			nextFixture := setup(t)
			policies := map[string]string{}
			nextFixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
				nextFixture.mu.Lock()
				defer nextFixture.mu.Unlock()
				policies[in.CallID] = in.RememberedRule
				return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
			}
			nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
			nextFixture.run(next)
			for i, m := range c.want {
				id := fmt.Sprint("c", i)
				wantEqual(t, fmt.Sprintf("the rule of call %s is remembered", id), policies[id] == "policy", m.Remember != "")
			}
		})
	}
}

// TestRememberedEqualArguments: arguments that differ only in their JSON encoding are equal.
func TestRememberedEqualArguments(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := quorumAnswer(3)
		for i, c := range a.Calls {
			c.Approval.Quorum, c.Approval.ArgsDigest, c.Approval.Canonical = 1, fmt.Sprint("written", i), []string{"equal", "equal", ""}[i]
		}
		return a, nil
	}
	d := ann.approvalOf("c0")
	d.Remember = runs.RememberArguments
	fixture.decideOneByOne(d, bob.decisionAbout(runs.DecisionReject, "c2", ""))
	calls := fixture.runUntilContinued(input).Resume.Items
	wantEqual(t, "kind of the second call's decision", calls[1].Decision.Kind, runs.DecisionApprove)
	wantEqual(t, "arguments of the second call's decision", calls[1].Decision.ArgsDigest, "written1")
	wantEqual(t, "kind of the third call's decision", calls[2].Decision.Kind, runs.DecisionReject)
}

// TestVotesFitIntoPayload: the votes about all calls continue as one payload, whatever the
// votes are.
func TestVotesFitIntoPayload(t *testing.T) {
	t.Parallel()
	for quorum, limit := range map[int]int{2: 6, 8: 2} {
		for _, calls := range []int{limit, runs.MaxInterrupts} {
			fixture := setup(t)
			fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
				a := quorumAnswer(calls)
				for i := range a.Calls {
					a.Calls[i].ID = fmt.Sprintf("call_%026d", i)
					a.Calls[i].Approval.Quorum, a.Calls[i].Approval.ArgsDigest = quorum, fmt.Sprintf("%032d", i)
					a.Calls[i].Approval.RuleDigest, a.Calls[i].Approval.Remind = "0123456789abcdef", time.Hour
				}
				return a, nil
			}
			in := input
			in.Limits.ParallelTools = 100
			fixture.env.RegisterDelayedCallback(func() {
				for i := range calls {
					for voter := range quorum - 1 {
						for _, args := range []string{"", fmt.Sprintf("%032d", 99)} {
							p := person(fmt.Sprintf("%015d%s", voter, args[:min(1, len(args))]))
							d := p.decisionAbout(runs.DecisionEdit, fmt.Sprintf("call_%026d", i), args)
							d.Digest, d.Proposal = fmt.Sprintf("%032d", voter), 1<<40
							fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{d}}, make(chan any, 1))
						}
					}
				}
			}, time.Second)
			fixture.env.ExecuteWorkflow(runs.TypeRun, in)
			wantEqual(t, fmt.Sprintf("quorum %d, %d calls: the run ends at the limit of calls", quorum, calls), fixture.finished[0].Code == runs.CodeLimitParallelTools, calls > limit)
			if calls > limit {
				continue
			}
			var parked runs.ParkedInput
			decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
			if n := len(parked.Interrupts.Items[calls-1].Votes); n != 2*(quorum-1) {
				t.Errorf("quorum %d: got %d votes, want %d", quorum, n, 2*(quorum-1))
			}
		}
	}
}
