package activities_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// openLedger gives the activities a ledger with a soft budget.
func openLedger(t *testing.T, fixture *fixture, soft budget.Amounts) {
	t.Helper()
	fixture.acts.Budget = openLedgerAtNoon(t, fixture.log, budget.Day{Soft: soft})
}

// openLedgerAtNoon opens a ledger at noon, with the budget of a day.
func openLedgerAtNoon(t *testing.T, log *stream.Log, day budget.Day) *budget.Ledger {
	t.Helper()
	ledger, err := budget.Open(t.Context(), log, day, nil)
	if err != nil {
		t.Fatal(err)
	}
	ledger.Now = func() time.Time { return noon }
	return ledger
}

// noon is the time of the ledgers in tests, so that no day ends during a test.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// today is the day of noon.
const today = "2026-01-31"

// TestDayBudgetInterrupt: a run whose tenant has used up its soft budget of the day raises an
// interrupt before the model call, whether or not its agent has soft limits. The turn of the
// interrupt has no output.
func TestDayBudgetInterrupt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		soft        budget.Amounts
		wantMessage string
		wantFigures string
	}{
		"tokens": {
			budget.AmountsOf(1000, 0), "The tenant has used 1200 tokens on " + today + ", UTC. May the run continue up to 2200 tokens?",
			`{"limit":"tokensPerDay","used":1200,"allowed":2200,"date":"` + today + `"}`,
		},
		"cost": {
			budget.AmountsOf(0, 1_500), "The tenant has spent 0.002 EUR on " + today + ", UTC. May the run continue up to 0.0035 EUR?",
			`{"limit":"costPerDay","used":0.002,"allowed":0.0035,"currency":"EUR","date":"` + today + `"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupDecidedLimits(t, approve)
			fixture.acts.Prices = prices(t)
			openLedger(t, fixture.fixture, c.soft)
			events, result := fixture.run("go")
			mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, "number of questions", len(fixture.questions), 1)
			mustEqual(t, "number of model calls", fixture.calls.Load(), 3)
			q := fixture.questions[0]
			wantEqual(t, "message of the interrupt", q.Message, c.wantMessage)
			if strings.Contains(string(q.ResponseSchema), "content") {
				t.Errorf("response schema = %q, want no %q", string(q.ResponseSchema), "content")
			}
			wantEqual(t, "response schema is valid JSON", json.Valid(q.ResponseSchema), true)
			source, err := stream.ApprovalSourceOf(q)
			if err != nil {
				t.Fatal(err)
			}
			if source == nil {
				t.Fatal("source of the interrupt = nil, want a value")
			}
			wantEqual(t, "source of the interrupt: step", source.Step, "~limit")
			wantEqual(t, "source of the interrupt: arguments digest", source.ArgsDigest, runs.DigestArgs(c.wantFigures))
			const shown = "TOOL_CALL_RESULT STEP_FINISHED STEP_STARTED STEP_FINISHED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END STEP_FINISHED CUSTOM " +
				"STEP_STARTED TOOL_CALL_RESULT STEP_FINISHED STEP_STARTED TEXT_MESSAGE_START"
			got := typesOf(events)
			if !strings.Contains(got, shown) {
				t.Errorf("events = %q, want text with %q", got, shown)
			}
			all := strings.Join(fixture.sent, "\n")
			if strings.Contains(all, "approve") {
				t.Errorf("messages sent to the model = %q, want no %q", all, "approve")
			}
			if strings.Contains(all, "Approved") {
				t.Errorf("messages sent to the model = %q, want no %q", all, "Approved")
			}
			m := fixture.conversation()
			n := len(m)
			if n < 3 {
				t.Errorf("number of messages = %v, want at least %v", n, 3)
			}
			wantEqual(t, "last message", m[n-1].Content.Text(), "Done.")
			wantEqual(t, "result of the approval", m[n-2].Content.Text(), "Approved.")
			wantEqual(t, "arguments of the approval", m[n-3].ToolCalls[0].Arguments, c.wantFigures)
		})
	}
}

// TestRejectedDayBudgetEndsRun: the approvers of the agent's soft limits decide about the day's
// budget. A rejection ends the run with the code of the budget.
func TestRejectedDayBudgetEndsRun(t *testing.T) {
	t.Parallel()
	soft := agents.SoftLimits{Turns: 8, Approval: agents.Approval{Approvers: []string{"ann"}, Expires: time.Hour}}
	fixture := setupLimits(t, soft, func() runs.Decision { return runs.Decision{Kind: runs.DecisionReject} })
	openLedger(t, fixture.fixture, budget.AmountsOf(600, 0))
	events, result := fixture.run("go")
	last, ok := events[len(events)-1].(*agui.RunError)
	mustEqual(t, "last event is RUN_ERROR", ok, true)
	wantEqual(t, "code of the last event", last.Code, runs.CodeBudgetExceeded)
	wantEqual(t, "code", result.Code, last.Code)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 1)
	mustEqual(t, "number of interrupts", len(fixture.questions), 1)
	if fixture.questions[0].ExpiresAt == "" {
		t.Error("interrupts: [0].ExpiresAt is empty, want a value")
	}
}

// TestBudgetCheckIsRecordedOnce: an attempt after one that found the day used up finds its record,
// whatever was used meanwhile. A call whose workflow cannot raise the interrupt goes through.
func TestBudgetCheckIsRecordedOnce(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	openLedger(t, fixture, budget.AmountsOf(10, 0))
	if err := fixture.acts.Budget.Count(t.Context(), "default", "other", budget.Use{Tokens: 10}); err != nil {
		t.Fatal(err)
	}
	message := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("hello")}
	in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: message.ID, Message: &message}}}}
	in.Input.ThreadID, in.Input.RunID, in.Input.ProtocolVersion = run.Thread.ID, run.ID, "1.0"
	p, err := fixture.log.ProposeInput(t.Context(), run, [32]byte{1}, in)
	if err != nil {
		t.Fatal(err)
	}
	env := newActivityEnv()
	env.SetDataConverter(runs.DataConverter())
	fixture.acts.Register(env)
	step := runs.Step{Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Execution: "x", Agent: "a", ID: "1/model", Turn: 1, Name: "model"}
	attempt := func(call runs.ModelCall) (answer runs.ModelAnswer) {
		t.Helper()
		value, err := env.ExecuteActivity(runs.ActivityCallModel, call)
		if err == nil {
			err = value.Get(&answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	call := runs.ModelCall{Step: step, Beginning: runs.Beginning{Input: p.Seq, Digest: p.Digest}, Day: &runs.DayAllowance{}}
	first := attempt(call)
	fixture.acts.Budget = nil
	again := attempt(call)
	if first.Exceeded == nil {
		t.Fatal("exceeded limit = nil, want a value")
	}
	mustEqual(t, "tokens of the day", first.Exceeded.Used, 10)
	mustEqual(t, "number of model calls", fixture.calls.Load(), 0)
	mustEqual(t, "answer of the repeated check", again, first)
	openLedger(t, fixture, budget.AmountsOf(10, 0))
	step.ID, step.Turn, step.After, step.Closes = "2/model", 2, first.Seq, "model"
	got := attempt(runs.ModelCall{Step: step})
	if got.Exceeded != nil {
		t.Errorf("exceeded limit = %+v, want nil", got.Exceeded)
	}
	if got.MessageID == "" {
		t.Error("message of the answer is empty, want a value")
	}
	wantEqual(t, "number of model calls", fixture.calls.Load(), 1)
}

// TestDayBudgetInterruptBeforeBranches: a pipeline asks once, before branches whose agents cannot
// ask themselves. It does not ask before branches without agents.
func TestDayBudgetInterruptBeforeBranches(t *testing.T) {
	t.Parallel()
	fixture := setupDecidedLimits(t, approve)
	fixture.agent = parseDefinition(t, `name: a
model: test/m
tools: [add]
steps:
  - {name: sums, map: {items: "[1, 2]", steps: [{name: sum, tool: add, args: {a: "${item}", b: 1}}]}}
  - {name: all, map: {items: "[1, 2, 3]", concurrency: 1, steps: [{name: say, agent: {instructions: Say it.}}]}}
`)
	openLedger(t, fixture.fixture, budget.AmountsOf(10, 0))
	if err := fixture.acts.Budget.Count(t.Context(), "default", "other", budget.Use{Tokens: 10}); err != nil {
		t.Fatal(err)
	}
	events, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of questions", len(fixture.questions), 1)
	if fixture.calls.Load() < 3 {
		t.Errorf("number of model calls = %v, want at least %v", fixture.calls.Load(), 3)
	}
	if want := "The tenant has used 10 tokens on " + today + ", UTC. May the run continue up to 20 tokens?"; fixture.questions[0].Message != want {
		t.Errorf("interrupt: got %q, want %q", fixture.questions[0].Message, want)
	}
	interrupt := slices.IndexFunc(events, func(e agui.Event) bool { s, ok := e.(*agui.StepStarted); return ok && s.StepName == "limit" })
	sums := slices.IndexFunc(events, func(e agui.Event) bool { s, ok := e.(*agui.StepFinished); return ok && s.StepName == "sums" })
	answer := slices.IndexFunc(events, func(e agui.Event) bool { s, ok := e.(*agui.StepStarted); return ok && s.StepName == "say" })
	if sums < 0 {
		t.Errorf("position of the sums = %v, want at least %v", sums, 0)
	}
	if interrupt < sums {
		t.Errorf("position of the interrupt = %v, want at least %v", interrupt, sums)
	}
	if answer < interrupt {
		t.Errorf("position of the answer = %v, want at least %v", answer, interrupt)
	}
}
