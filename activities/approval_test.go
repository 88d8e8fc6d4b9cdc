package activities_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// TestInterruptsNameApprovalRule: an interrupt names the approval rule that raised it, so that the
// API can check who may decide.
func TestInterruptsNameApprovalRule(t *testing.T) {
	t.Parallel()
	fixture, s := setupInterrupt(t)
	r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	source, err := stream.ApprovalSourceOf(r.Interrupts[0])
	if err != nil {
		t.Fatal(err)
	}
	if source == nil {
		t.Fatal("source of the interrupt = nil, want a value")
	}
	since := time.Since(source.OpenedAt)
	if since < 0 {
		t.Errorf("time since the interrupt = %v, want at least %v", since, 0)
	}
	if since > time.Minute {
		t.Errorf("time since the interrupt = %v, want at most %v", since, time.Minute)
	}
	source.OpenedAt = time.Time{}
	if want := (stream.ApprovalSource{Agent: "a", Revision: "v", ArgsDigest: s.Items[0].Approval.ArgsDigest, Quorum: 1}); *source != want {
		t.Errorf("source of the interrupt: got %+v, want %+v", *source, want)
	}
}

// TestRepeatedFinishReturnsTimesOfInterrupts: a repeated Finish of a run returns when its
// interrupts were opened and when they expire.
func TestRepeatedFinishReturnsTimesOfInterrupts(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`})
	}, addTool())
	fixture.agent.Approvals = []agents.Approval{{Tools: []string{"add"}, Expires: 3 * time.Hour}}
	fixture.runUntilInterrupt("go")
	r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	q := r.Interrupts[0]
	source, err := stream.ApprovalSourceOf(q)
	if err != nil {
		t.Fatal(err)
	}
	if source == nil {
		t.Fatal("source of the interrupt = nil, want a value")
	}
	in := runs.FinishInput{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: run.ID}, Execution: "e", After: 1, Outcome: runs.OutcomeSuccess}
	again, err := fixture.acts.Finish(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	expires := again.Expires[q.ToolCallID]
	if again.Outcome != runs.OutcomeInterrupt || !again.OpenedAt.Equal(source.OpenedAt) || len(again.Expires) != 1 || source.OpenedAt.Add(3*time.Hour).Sub(expires).Abs() >= time.Millisecond {
		t.Errorf("repeated Finish: got %+v, want an interrupt opened at %s", again, source.OpenedAt)
	}
}

// TestWorkflowReceivesNumbersOfRule: the workflow receives numbers and times of a rule, and neither
// approvers nor conditions.
func TestWorkflowReceivesNumbersOfRule(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`})
	}, addTool())
	fixture.agent.Approvals = []agents.Approval{{
		Tools: []string{"add"}, When: "true", Approvers: []string{"ann", "role:x"}, Quorum: 2, NotByRequester: true, Remind: time.Hour,
		Escalate: []agents.Escalation{{After: 2 * time.Hour, To: []string{"bob"}}}, Expires: 3 * time.Hour, OnExpiry: agents.OnExpiryEscalate,
	}}
	fixture.runUntilInterrupt("go")
	answer, err := fixture.askModel("r2", "1/model", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := &runs.Approval{
		ArgsDigest: runs.DigestArgs(`{"a":1,"b":2}`), RuleDigest: fixture.agent.RuleDigest(0), Quorum: 2, Remind: time.Hour,
		Escalate: []time.Duration{2 * time.Hour, 3 * time.Hour}, Expires: 6 * time.Hour, OnExpiry: runs.OnExpiryReject,
	}
	if diff := cmp.Diff(want, answer.Calls[0].Approval); diff != "" {
		t.Errorf("approval (-want +got):\n%s", diff)
	}
}

// askModel calls the model in a run without an input, which continues the first run.
func (f *fixture) askModel(id, step string, after uint64) (runs.ModelAnswer, error) {
	f.t.Helper()
	env := newActivityEnv()
	env.RegisterActivity(f.acts.CallModel)
	in := runs.ModelCall{Step: runs.Step{
		Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: id}, Execution: "e2", Agent: "a", Revision: "v", ID: step, Name: "model", After: after,
	}}
	if after == 0 {
		in.Beginning = runs.Beginning{Continues: run.ID}
	}
	value, err := env.ExecuteActivity(f.acts.CallModel, in)
	var answer runs.ModelAnswer
	if err == nil {
		err = value.Get(&answer)
	}
	return answer, err
}

// TestRememberedApprovalsCoverLaterCalls: a remembered approval covers later calls until the rule
// changes.
func TestRememberedApprovalsCoverLaterCalls(t *testing.T) {
	t.Parallel()
	fixture, s := setupInterrupt(t)
	tool, err := fixture.makeDecidedCall(s, runs.Decision{CallID: s.Items[0].ID, Kind: runs.DecisionApprove, ArgsDigest: s.Items[0].Approval.ArgsDigest, Remember: runs.RememberTool}, "")
	if err != nil {
		t.Fatal(err)
	}
	first, err := fixture.askModel("r2", "1/model", tool.Opened)
	if err != nil {
		t.Fatal(err)
	}
	if first.InterruptCount != 0 || len(first.Calls) != 2 {
		t.Errorf("calls after the approval: got %+v, want none that waits", first.Calls)
	}
	fixture.agent.Approvals[0].Quorum = 2
	second, err := fixture.askModel("r2", "2/model", first.Seq)
	if err != nil {
		t.Fatal(err)
	}
	if second.InterruptCount != 1 || second.Calls[0].Approval == nil {
		t.Errorf("calls after a change of the rule: got %+v, want one that waits", second.Calls)
	}
}

// TestRememberedEqualArguments: a remembered approval of arguments covers calls with equal
// arguments, however they are encoded, and no others.
func TestRememberedEqualArguments(t *testing.T) {
	t.Parallel()
	var other atomic.Bool
	fixture, s := setupInterruptWith(t, func() string {
		if other.Load() {
			return `{"a":1,"b":3}`
		}
		return `{"a":1,"b":2}`
	})
	tool, err := fixture.makeDecidedCall(s, runs.Decision{CallID: s.Items[0].ID, Kind: runs.DecisionApprove, ArgsDigest: s.Items[0].Approval.ArgsDigest, Remember: runs.RememberArguments}, "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "number of remembered approvals", len(snap.Remembered), 1)
	wantEqual(t, "arguments of the remembered approval", snap.Remembered[0].Args, runs.CanonicalDigest(` { "b": 2, "a": 1 } `))
	equal, err := fixture.askModel("r2", "1/model", tool.Opened)
	if err != nil || equal.InterruptCount != 0 {
		t.Errorf("equal arguments: got %+v, %v, want no call that waits", equal, err)
	}
	other.Store(true)
	if answer, err := fixture.askModel("r2", "2/model", equal.Seq); err != nil || answer.InterruptCount != 1 {
		t.Errorf("other arguments: got %+v, %v, want one call that waits", answer, err)
	}
}

// TestWaitingCallsAreBounded: an answer with more waiting calls than a run may end with names only
// some of them, because its payload is bounded. The run ends with a limit.
func TestWaitingCallsAreBounded(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		var calls [][3]string
		for i := range 60 {
			calls = append(calls, [3]string{fmt.Sprint("x", i), "add", fmt.Sprintf(`{"a":%d,"b":2}`, i)})
		}
		return callAnswer(calls...)
	}, addTool())
	fixture.limits.ParallelTools = 100
	rule := agents.Approval{Tools: []string{"add"}, Approvers: []string{"ann"}, Remind: time.Hour, Expires: 999 * time.Hour, OnExpiry: agents.OnExpirySkip}
	for i := range 4 {
		rule.Escalate = append(rule.Escalate, agents.Escalation{After: time.Duration(i+1) * time.Hour, To: []string{"bob"}})
	}
	fixture.agent.Approvals = []agents.Approval{rule}
	_, result := fixture.run("go")
	wantEqual(t, "code", result.Code, runs.CodeLimitParallelTools)
}
