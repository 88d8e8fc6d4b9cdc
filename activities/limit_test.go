package activities_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools/builtin"
)

// limitFixture is a fixture whose model works for two turns of 600 tokens, and whose run raises an
// interrupt. The run is held, and the interrupt is decided a minute later.
type limitFixture struct {
	*fixture
	questions []agui.Interrupt
	sent      []string
}

// setupLimits returns a fixture whose agent has soft limits.
func setupLimits(t *testing.T, soft agents.SoftLimits, decides func() runs.Decision) *limitFixture {
	t.Helper()
	fixture := setupDecidedLimits(t, decides)
	fixture.agent.Limits.Soft = &soft
	fixture.limits = runs.LimitsOfRun(agents.Limits{Turns: 9, Tokens: 10_000, Duration: time.Hour, ParallelTools: 1, Soft: &soft})
	return fixture
}

// setupDecidedLimits returns a limitFixture whose run is held and receives a decision.
func setupDecidedLimits(t *testing.T, decides func() runs.Decision) *limitFixture {
	t.Helper()
	fixture := &limitFixture{}
	fixture.fixture = setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		for _, m := range req.Messages {
			fixture.sent = append(fixture.sent, m.Text())
			for _, c := range m.ToolCalls {
				fixture.sent = append(fixture.sent, c.Name)
			}
		}
		if n > 2 {
			return textAnswer("Done.")
		}
		return endlessCalls(n, req)
	}, addTool(), builtin.Approve())
	fixture.agent.Tools = []string{"add"}
	fixture.limits.Tokens = 10_000
	fixture.hold = true
	fixture.env.RegisterDelayedCallback(func() {
		r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
		if err != nil || len(r.Interrupts) != 1 {
			t.Errorf("open interrupts: got %+v, %v, want one", r, err)
			fixture.env.CancelWorkflow()
			return
		}
		fixture.questions = r.Interrupts
		d := decides()
		d.CallID, d.Digest = r.Interrupts[0].ToolCallID, "d"
		fixture.env.UpdateWorkflow(runs.UpdateDecide, "u", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
		}, runs.DecideRequest{Decisions: []runs.Decision{d}})
	}, time.Minute)
	return fixture
}

// approve returns an approval.
func approve() runs.Decision { return runs.Decision{Kind: runs.DecisionApprove} }

func TestSoftLimitInterrupt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		soft        agents.SoftLimits
		wantMessage string
		wantArgs    string
	}{
		"tokens": {agents.SoftLimits{Tokens: 1000}, "The run has used 1200 tokens. May it continue, up to 2200 tokens?", `{"limit":"tokens","used":1200,"allowed":2200}`},
		"turns":  {agents.SoftLimits{Turns: 2}, "The run has taken 2 turns. May it continue, up to 4 turns?", `{"limit":"turns","used":2,"allowed":4}`},
		"cost":   {agents.SoftLimits{Cost: 1_500}, "The run has cost 0.002 EUR. May it continue, up to 0.0035 EUR?", `{"limit":"cost","used":0.002,"allowed":0.0035,"currency":"EUR"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupLimits(t, c.soft, approve)
			fixture.acts.Prices = prices(t)
			events, result := fixture.run("go")
			mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, "number of questions", len(fixture.questions), 1)
			q := fixture.questions[0]
			wantEqual(t, "message of the interrupt", q.Message, c.wantMessage)
			if !strings.Contains(string(q.ResponseSchema), `"editedArgs":{"type":"object","required":["allowed"]`) {
				t.Errorf("response schema = %q, want text with %q", string(q.ResponseSchema), `"editedArgs":{"type":"object","required":["allowed"]`)
			}
			wantEqual(t, "response schema is valid JSON", json.Valid(q.ResponseSchema), true)
			source, err := stream.ApprovalSourceOf(q)
			if err != nil {
				t.Fatal(err)
			}
			if source == nil {
				t.Fatal("source of the interrupt = nil, want a value")
			}
			wantEqual(t, "source of the interrupt: agent", source.Agent, "a")
			wantEqual(t, "source of the interrupt: step", source.Step, "~limit")
			wantEqual(t, "source of the interrupt: arguments digest", source.ArgsDigest, runs.DigestArgs(c.wantArgs))
			const shown = "STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END STEP_FINISHED CUSTOM STEP_STARTED TOOL_CALL_RESULT STEP_FINISHED STEP_STARTED TEXT_MESSAGE_START"
			got := typesOf(events)
			if !strings.Contains(got, shown) {
				t.Errorf("events = %q, want text with %q", got, shown)
			}
			var arguments string
			for _, e := range events {
				if args, ok := e.(*agui.ToolCallArgs); ok {
					arguments = args.Delta
				}
			}
			if arguments != c.wantArgs {
				t.Errorf("arguments: got %s, want %s", arguments, c.wantArgs)
			}
			all := strings.Join(fixture.sent, "\n")
			if strings.Contains(all, "approve") {
				t.Errorf("messages sent to the model = %q, want no %q", all, "approve")
			}
			if strings.Contains(all, "Approved") {
				t.Errorf("messages sent to the model = %q, want no %q", all, "Approved")
			}
			if !strings.Contains(all, "add") {
				t.Errorf("messages sent to the model = %q, want text with %q", all, "add")
			}
			m := fixture.conversation()
			n := len(m)
			if n < 3 {
				t.Errorf("number of messages = %v, want at least %v", n, 3)
			}
			wantEqual(t, "last message", m[n-1].Content.Text(), "Done.")
			wantEqual(t, "result of the approval", m[n-2].Content.Text(), "Approved.")
			wantEqual(t, "name of the approval call", m[n-3].ToolCalls[0].Name, "approve")
		})
	}
}

// TestEditedSoftLimit: an edit sets another figure for the limit. Readers see it in the
// conversation.
func TestEditedSoftLimit(t *testing.T) {
	t.Parallel()
	const args = `{"limit":"tokens","used":1200,"allowed":1201}`
	var fixture *limitFixture
	fixture = setupLimits(t, agents.SoftLimits{Tokens: 1000}, func() runs.Decision {
		content := &stream.Decision{Kind: "edit", Args: json.RawMessage(args)}
		return runs.Decision{Kind: runs.DecisionEdit, Proposal: fixture.proposeDecision(content), ArgsDigest: runs.DigestArgs(args), Allowed: 1201}
	})
	_, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	m := fixture.conversation()
	wantEqual(t, "result of the approval", m[len(m)-2].Content.Text(), "Approved.")
	wantEqual(t, "arguments of the approval", m[len(m)-3].ToolCalls[0].Arguments, args)
}

// TestRejectedSoftLimitEndsRun: the reason of a rejection is in the conversation.
func TestRejectedSoftLimitEndsRun(t *testing.T) {
	t.Parallel()
	var fixture *limitFixture
	fixture = setupLimits(t, agents.SoftLimits{Tokens: 1000}, func() runs.Decision {
		return runs.Decision{Kind: runs.DecisionReject, Proposal: fixture.proposeDecision(&stream.Decision{Kind: "reject", Reason: "too dear"})}
	})
	events, result := fixture.run("go")
	last, ok := events[len(events)-1].(*agui.RunError)
	mustEqual(t, "last event is RUN_ERROR", ok, true)
	wantEqual(t, "code of the last event", last.Code, runs.CodeLimitTokens)
	wantEqual(t, "code", result.Code, last.Code)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 2)
	m := fixture.conversation()
	text := m[len(m)-1].Content.Text()
	if !strings.Contains(text, "too dear") {
		t.Errorf("last message = %q, want text with %q", text, "too dear")
	}
}

// TestSoftLimitInterruptIsRecordedOnce: an attempt after one that died finds the recorded interrupt
// and raises no other. The interrupt may be the first step of a run.
func TestSoftLimitInterruptIsRecordedOnce(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	fixture.agent.Limits.Soft = &agents.SoftLimits{Tokens: 1000, Approval: agents.Approval{Expires: time.Hour, Quorum: 2}}
	fixture.run("hello")
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(fixture.acts.InterruptForLimit)
	in := runs.LimitInterrupt{
		Step: runs.Step{
			Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: "r2"}, Execution: "e2", Agent: "a", Revision: "v", ID: "1/limit", Name: "limit",
			PipelineStep: &runs.StepRef{Path: "~limit", Name: "limit", Inline: true, Scope: runs.ScopeLimit},
		},
		Beginning: runs.Beginning{Continues: run.ID}, Exceeded: runs.ExceededLimit{Code: runs.CodeLimitDuration, Used: int64(61*time.Second) + 1, Allowed: int64(2 * time.Minute)},
	}
	var answers [2]runs.ModelAnswer
	for i := range answers {
		value, err := env.ExecuteActivity(fixture.acts.InterruptForLimit, in)
		if err == nil {
			err = value.Get(&answers[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
		t.Errorf("answer of the repeated check (-first +second):\n%s", diff)
	}
	const args = `{"limit":"duration","used":"1m1s","allowed":"2m0s"}`
	c := answers[0].Calls[0]
	want := (&runs.Approval{ArgsDigest: runs.DigestArgs(args), Canonical: runs.CanonicalDigest(args), RuleDigest: c.Approval.RuleDigest, Quorum: 2, Expires: time.Hour})
	wantEqual(t, "tool of the call", c.Tool, "approve")
	wantEqual(t, "number of interrupts", answers[0].InterruptCount, 1)
	wantEqual(t, "approval of the call", c.Approval, want)
	m := fixture.conversation()
	n := len(m)
	mustEqual(t, "number of messages", n, 3)
	wantEqual(t, "arguments of the approval", m[2].ToolCalls[0].Arguments, args)
}
