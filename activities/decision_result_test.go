package activities_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// setupInterrupt returns a fixture whose run has ended with an interrupt: approve the sum of 1 and
// 2.
func setupInterrupt(t *testing.T) (*fixture, *runs.Interrupts) {
	t.Helper()
	return setupInterruptWith(t, func() string { return `{"a":1,"b":2}` })
}

// setupInterruptWith is setupInterrupt with other arguments in later answers.
func setupInterruptWith(t *testing.T, arguments func() string) (*fixture, *runs.Interrupts) {
	t.Helper()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x", "add", arguments()}, [3]string{"y", "add", `{"a":9,"b":9}`})
	}, addTool())
	return fixture, fixture.interruptOf()
}

// interruptOf runs the fixture until the call of add with a = 1 waits for an approval.
func (f *fixture) interruptOf() *runs.Interrupts {
	f.t.Helper()
	t := f.t
	f.agent.Approvals = []agents.Approval{{Tools: []string{"add"}, When: "args.a == 1"}}
	f.runUntilInterrupt("go")
	r, err := f.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "number of interrupts", len(r.Interrupts), 1)
	mustEqual(t, "run is sealed", r.Sealed, true)
	mustEqual(t, "number of entries", len(r.Entries), 3)
	interrupt, message := r.Interrupts[0], r.Entries[1].Message
	wantEqual(t, "interrupt: tool call ID", interrupt.ToolCallID, message.ToolCalls[0].ID)
	wantEqual(t, "interrupt: reason", interrupt.Reason, "tool_call")
	mustEqual(t, "response schema is valid JSON", json.Valid(interrupt.ResponseSchema), true)
	wantEqual(t, "call of the first result", r.Entries[2].Message.ToolCallID, message.ToolCalls[1].ID)
	return &runs.Interrupts{MessageID: message.ID, Items: []runs.Interrupt{{Call: runs.Call{
		ID: interrupt.ToolCallID, Tool: "add", Approval: &runs.Approval{ArgsDigest: runs.DigestArgs(`{"a":1,"b":2}`)},
	}}}}
}

// runUntilInterrupt executes the workflow until it waits for decisions.
func (f *fixture) runUntilInterrupt(message string) {
	f.t.Helper()
	user := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(message)}
	in := &stream.Input{Input: f.input, Requester: f.requester, Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &user}}}}
	in.Input.ThreadID, in.Input.RunID, in.Input.ProtocolVersion = run.Thread.ID, run.ID, "1.0"
	p, err := f.log.ProposeInput(f.t.Context(), run, [32]byte{1}, in)
	if err != nil {
		f.t.Fatal(err)
	}
	f.env.ExecuteWorkflow(runs.TypeRun, runs.Input{
		Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: run.ID}, AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: f.limits, Steps: len(f.agent.Steps) > 0}, Input: p.Seq, Digest: p.Digest,
	})
}

// makeDecidedCall makes the decided call, in a run without an input.
func (f *fixture) makeDecidedCall(s *runs.Interrupts, d runs.Decision, then runs.OnExpiry) (runs.ToolAnswer, error) {
	f.t.Helper()
	env := newActivityEnv()
	env.RegisterActivity(f.acts.CallTool)
	in := runs.ToolCall{
		Step:       runs.Step{Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: "r2"}, Execution: "e2", Agent: "a", Revision: "v", ID: "0/tools/0", Name: "tools"},
		TurnStepID: "0/tools", CallID: s.Items[0].ID, MessageID: s.MessageID, Decision: &d, OnExpiry: then, Beginning: &runs.Beginning{Continues: run.ID},
	}
	if d.Remember != "" {
		in.RememberedRule = f.agent.RuleDigest(0)
	}
	value, err := env.ExecuteActivity(f.acts.CallTool, in)
	var answer runs.ToolAnswer
	if err == nil {
		err = value.Get(&answer)
	}
	return answer, err
}

// proposeDecision writes the proposed record of a decision, and returns its sequence.
func (f *fixture) proposeDecision(d *stream.Decision) uint64 {
	f.t.Helper()
	p, err := f.log.ProposeDecision(f.t.Context(), run, sha256.Sum256([]byte(d.Kind+d.Reason)), d)
	if err != nil {
		f.t.Fatal(err)
	}
	return p.Seq
}

func TestDecidedCallHasResultOfDecision(t *testing.T) {
	t.Parallel()
	approved := runs.DigestArgs(`{"a":1,"b":2}`)
	for name, tt := range map[string]struct {
		kind     runs.DecisionKind
		decision *stream.Decision
		digest   string
		onExpiry runs.OnExpiry
		want     string
	}{
		"approve":     {kind: runs.DecisionApprove, digest: approved, want: "3"},
		"edit":        {kind: runs.DecisionEdit, decision: &stream.Decision{Args: json.RawMessage(`{"a":2,"b":2}`)}, digest: runs.DigestArgs(`{"a":2,"b":2}`), want: "4"},
		"reject":      {kind: runs.DecisionReject, want: "The approver rejected this call. It was not made."},
		"with reason": {kind: runs.DecisionReject, decision: &stream.Decision{Reason: `say "no"`}, want: `The approver rejected this call. It was not made. Reason: "say \"no\""`},
		"answer":      {kind: runs.DecisionAnswer, decision: &stream.Decision{Result: &agui.Message{ID: "r", Role: agui.RoleTool, ToolCallID: "c", Content: agui.TextContent("three")}}, want: "three"},
		"cancel":      {kind: runs.DecisionCancel, want: "The approval of this call was cancelled. It was not made."},
		"expire":      {kind: runs.DecisionExpire, want: "The approval of this call expired. It was not made."},
		"skip":        {kind: runs.DecisionExpire, onExpiry: runs.OnExpirySkip, want: "The approval of this call expired. The call was skipped."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture, s := setupInterrupt(t)
			d := runs.Decision{CallID: s.Items[0].ID, Kind: tt.kind, ArgsDigest: tt.digest}
			if tt.decision != nil {
				tt.decision.Kind = string(tt.kind)
				d.Proposal = fixture.proposeDecision(tt.decision)
			}
			if _, err := fixture.makeDecidedCall(s, d, tt.onExpiry); err != nil {
				t.Fatal(err)
			}
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			result := r.Entries[slices.IndexFunc(r.Entries, func(e snapshot.Entry) bool { return e.Message.ToolCallID == s.Items[0].ID })].Message
			if got := result.Content.Text(); got != tt.want || r.RunID != "r2" || len(r.Interrupts) != 0 {
				t.Errorf("got the result %q of the run %s with %d open interrupts, want %q of the run r2 with none", got, r.RunID, len(r.Interrupts), tt.want)
			}
			edited := r.Entries[1].Message.ToolCalls[0].Arguments == `{"a":2,"b":2}`
			wantEqual(t, "call has the edited arguments", edited, tt.kind == runs.DecisionEdit)
		})
	}
}

// TestRejectionRestoresPredictedState: a rejected call leaves the state as it was before the model
// wrote its arguments; an approved one does not.
func TestRejectionRestoresPredictedState(t *testing.T) {
	t.Parallel()
	for kind, want := range map[runs.DecisionKind]string{runs.DecisionApprove: `{"sum":1}`, runs.DecisionReject: `{}`, runs.DecisionExpire: `{}`, runs.DecisionCancel: `{}`} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
				return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`}, [3]string{"y", "calculate", `{}`})
			}, addTool())
			fixture.agent.State.Predict = []agents.Prediction{{Tool: "add", Argument: "a", Key: "sum"}}
			s := fixture.interruptOf()
			if _, err := fixture.makeDecidedCall(s, runs.Decision{CallID: s.Items[0].ID, Kind: kind, ArgsDigest: runs.DigestArgs(`{"a":1,"b":2}`)}, ""); err != nil {
				t.Fatal(err)
			}
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "state", string(r.State), want)
		})
	}
}

// TestChangedArgumentsAreRefused: a call is not made with arguments that differ from the decided
// ones.
func TestChangedArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	fixture, s := setupInterrupt(t)
	for _, d := range []runs.Decision{
		{CallID: s.Items[0].ID, Kind: runs.DecisionApprove, ArgsDigest: runs.DigestArgs(`{"a":1,"b":3}`)},
		{CallID: s.Items[0].ID, Kind: runs.DecisionEdit, ArgsDigest: runs.DigestArgs(`{}`), Proposal: fixture.proposeDecision(&stream.Decision{Kind: "edit", Args: json.RawMessage(`{"a":5}`)})},
	} {
		_, err := fixture.makeDecidedCall(s, d, "")
		if err == nil {
			t.Fatalf("%s: error of the call = nil, want an error", d.Kind)
		}
		if !strings.Contains(err.Error(), "differ from the approved arguments") {
			t.Errorf("%s: error = %q, want text with %q", d.Kind, err.Error(), "differ from the approved arguments")
		}
	}
}
