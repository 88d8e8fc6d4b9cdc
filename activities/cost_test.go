package activities_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// prices has a price for test/m: a call of say costs 10 + 2*5 millionths.
func prices(t *testing.T) *budget.File {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("currency: EUR\nprices: [{model: test/m, input: 1, output: 5}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := budget.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// endlessCalls answers with tool calls without end. Each answer costs 1,000 millionths.
func endlessCalls(n int, _ *llm.Request) ([]llm.Chunk, error) {
	chunks, err := callAnswer([3]string{fmt.Sprint("c", n), "add", `{"a":1,"b":1}`})
	chunks[len(chunks)-1] = llm.Finish{Reason: llm.FinishToolCalls, Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(500), Output: pointer(100)}}
	return chunks, err
}

func TestRunReportsItsCost(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
	fixture.acts.Prices = prices(t)
	events, _ := fixture.run("hello")
	finished := events[len(events)-1].(*agui.RunFinished)
	got := string(finished.Metadata["perdure.cost"])
	wantEqual(t, "cost", got, `{"amount":0.00002,"currency":"EUR"}`)
}

func TestCostEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, wantCode string
		isPriced       bool
		wantCalls      int32
	}{
		{"at its limit", runs.CodeLimitCost, true, 3},
		{"before a model without a price", "price_unknown", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, endlessCalls, addTool())
			if c.isPriced {
				fixture.acts.Prices = prices(t)
			}
			fixture.limits = runs.Limits{Turns: 9, Tokens: 1_000_000, Duration: time.Hour, ParallelTools: 1, Cost: 2_500}
			events, result := fixture.run("go")
			wantEqual(t, "code", result.Code, c.wantCode)
			wantEqual(t, "number of model calls", fixture.calls.Load(), c.wantCalls)
			if _, ok := events[len(events)-1].(*agui.RunError); !ok {
				t.Errorf("last event: got %T, want RUN_ERROR", events[len(events)-1])
			}
		})
	}
}

// TestDayBudgetEndsRun: a tenant that has used its budget of the day cannot call a model.
func TestDayBudgetEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setup(t, endlessCalls, addTool())
	ledger := openLedgerAtNoon(t, fixture.log, budget.Day{Amounts: budget.AmountsOf(1500, 0)})
	fixture.acts.Budget = ledger
	fixture.limits = runs.Limits{Turns: 9, Tokens: 1_000_000, Duration: time.Hour, ParallelTools: 1}
	_, result := fixture.run("go")
	if result.Code != "budget_exceeded" || fixture.calls.Load() != 3 {
		t.Errorf("got %+v after %d calls, want 3 of 600 tokens for 1500", result, fixture.calls.Load())
	}
}

// TestAnswerIsCountedOnceInBudget: an attempt may die between the record of its answer and the
// count in the budget. The next attempt finds the record and counts it, once only.
func TestAnswerIsCountedOnceInBudget(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
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
	attempt := func() {
		t.Helper()
		step := runs.Step{Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Execution: "x", Agent: "a", ID: "1/model", Turn: 1, Name: "model"}
		call := runs.ModelCall{Step: step, Beginning: runs.Beginning{Input: p.Seq, Digest: p.Digest}}
		if _, err := env.ExecuteActivity(runs.ActivityCallModel, call); err != nil {
			t.Fatal(err)
		}
	}
	budgetOf := func(tokens int64) *budget.Ledger {
		l := openLedgerAtNoon(t, fixture.log, budget.Day{Amounts: budget.AmountsOf(tokens, 0)})
		return l
	}
	attempt() // without a budget the answer is not counted
	fixture.acts.Budget = budgetOf(1000)
	attempt()
	attempt()
	if n := fixture.calls.Load(); n != 1 {
		t.Fatalf("calls of the model: got %d, want 1", n)
	}
	if _, err := budgetOf(12).Check(t.Context(), "default", nil); !errors.Is(err, budget.ErrExceeded) {
		t.Errorf("Check of a budget of 12: got %v, want ErrExceeded", err)
	}
	if _, err := budgetOf(13).Check(t.Context(), "default", nil); err != nil {
		t.Errorf("Check of a budget of 13: got %v", err)
	}
}
