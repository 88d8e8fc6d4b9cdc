package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/temporaltest"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/workflows"
)

// runAgain executes a further run of the thread and returns its last event.
func (f *fixture) runAgain(id, message string) agui.Event {
	f.t.Helper()
	ctx, next := f.t.Context(), stream.Run{Thread: run.Thread, ID: id}
	user := agui.Message{ID: "u" + id, Role: agui.RoleUser, Content: agui.TextContent(message)}
	messages := f.conversation()
	in := &stream.Input{Accepted: stream.Acceptance{Keep: len(messages), Last: messages[len(messages)-1].ID, Tail: []stream.TailMessage{{ID: user.ID, Message: &user}}}}
	in.Input.ThreadID, in.Input.RunID, in.Input.ProtocolVersion = next.Thread.ID, id, "1.0"
	p, err := f.log.ProposeInput(ctx, next, [32]byte{2}, in)
	if err != nil {
		f.t.Fatal(err)
	}
	env := temporaltest.NewEnvironment(slog.DiscardHandler)
	env.SetDataConverter(runs.DataConverter())
	workflows.Register(env, nil)
	f.acts.Register(env)
	env.ExecuteWorkflow(runs.TypeRun, runs.Input{
		Run: runs.Ref{Tenant: "default", Thread: "t1", ID: id}, AgentRef: runs.AgentRef{Agent: "a", Limits: f.limits}, Input: p.Seq, Digest: p.Digest,
	})
	if err := env.GetWorkflowError(); err != nil {
		f.t.Fatal(err)
	}
	end, err := f.log.TerminalRecord(ctx, next)
	if err != nil {
		f.t.Fatal(err)
	}
	if end == nil {
		f.t.Fatal("end of the run = nil, want a value")
	}
	events, err := end.Events(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	last, err := agui.Decode(events[len(events)-1])
	if err != nil {
		f.t.Fatal(err)
	}
	return last
}

// reportedUsage is the usage that the last event of a run reports.
type reportedUsage struct {
	input, output int64 // with the estimated part
	total         int64 // of the entries that have one
	cut           snapshot.EstimatedUsage
}

// usageIn returns the usage that the last event of a run reports.
func usageIn(t *testing.T, last agui.Event) (c reportedUsage) {
	t.Helper()
	var usage []agui.TokenUsage
	var metadata agui.Metadata
	switch e := last.(type) {
	case *agui.RunFinished:
		usage, metadata = e.Usage, e.Metadata
	case *agui.RunError:
		usage, metadata = e.Usage, e.Metadata
	default:
		t.Fatalf("last event = %T, want RUN_FINISHED or RUN_ERROR", last)
	}
	for _, u := range usage {
		if u.InputTokens != nil {
			c.input += *u.InputTokens
		}
		if u.OutputTokens != nil {
			c.output += *u.OutputTokens
		}
		if u.TotalTokens != nil {
			c.total += *u.TotalTokens
		}
	}
	if cut := metadata["perdure.usage.estimated"]; cut != nil {
		if err := json.Unmarshal(cut, &c.cut); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestSummaryIsChargedOnce: the run that makes a summary is charged for it. Later
// runs that use it are not.
func TestSummaryIsChargedOnce(t *testing.T) {
	t.Parallel()
	summaries := 0
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if strings.Contains(req.Messages[0].Text(), "notes of an assistant") {
			summaries++
			return textAnswer("The story so far.")
		}
		if !strings.Contains(requestTexts(req), "[Older messages") {
			t.Errorf("messages sent: want a summary, got\n%s", requestTexts(req))
		}
		return textAnswer("ok")
	})
	fixture.agent.Context = agents.Context{MaxTokens: 2000, Policy: agents.ContextSummarize}
	fixture.more = conversationOf(20)
	ledger := openLedgerAtNoon(t, fixture.log, budget.Day{Amounts: budget.AmountsOf(1_000_000, 0)})
	fixture.acts.Budget = ledger
	events, _ := fixture.run("the very first question")
	got := []reportedUsage{usageIn(t, events[len(events)-1])}
	for _, id := range []string{"r2", "r3"} {
		got = append(got, usageIn(t, fixture.runAgain(id, "go on")))
	}
	for i, want := range []int64{20, 10, 10} {
		if got[i].input != want || got[i].cut.Calls != 0 {
			t.Errorf("run %d: got the usage %+v, want %d tokens of input", i+1, got[i], want)
		}
	}
	thread, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatalf("after %d summaries: %v", summaries, err)
	}
	mustEqual(t, "number of summaries", summaries, 1)
	mustEqual(t, fmt.Sprintf("after %d summaries: number of models in the usage", summaries), len(thread.Usage), 1)
	mustEqual(t, fmt.Sprintf("after %d summaries: input tokens", summaries), *thread.Usage[0].InputTokens, 40)
	wantEqual(t, fmt.Sprintf("after %d summaries: output tokens", summaries), *thread.Usage[0].OutputTokens, 8)
	if thread.Estimated != nil {
		t.Errorf("after %d summaries: estimated = %+v, want nil", summaries, thread.Estimated)
	}
	wantDayUsage(t, fixture, 48)
}

// wantDayUsage checks the tenant's usage of the day.
func wantDayUsage(t *testing.T, fixture *fixture, tokens int64) {
	t.Helper()
	for most, exceeded := range map[int64]bool{tokens: true, tokens + 1: false} {
		l := openLedgerAtNoon(t, fixture.log, budget.Day{Amounts: budget.AmountsOf(most, 0)})
		_, err := l.Check(t.Context(), "default", nil)
		wantEqual(t, fmt.Sprintf("budget of %d is exceeded after %d tokens", most, tokens), errors.Is(err, budget.ErrExceeded), exceeded)
	}
}

// twenty is a text of twenty tokens by the documented rule.
var twenty = strings.Repeat("word", 20)

// TestUnfinishedCallsAreEstimated: a call whose answer is cut is counted once, as an estimate: by
// the next attempt, or by the end of the run. A call that the provider refused costs nothing.
func TestUnfinishedCallsAreEstimated(t *testing.T) {
	t.Parallel()
	piece := llm.TextDelta{Text: twenty}
	reports := llm.UsageReport{Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(500), Output: pointer(1)}}
	truncated := &llm.Error{Code: llm.CodeTruncated}
	var prompt int64 // an estimate of the request
	for name, c := range map[string]struct {
		chunks     []llm.Chunk
		err        error // nil: the worker dies
		hasRequest bool  // an HTTP request
		writeErr   error // why the request did not leave the process
		wantEnd    bool  // the run ends with the failure
		wantCalls  int64
		wantInput  int64 // 0 = the estimate
		wantOutput int64
	}{
		"the connection breaks":          {chunks: []llm.Chunk{piece}, err: truncated, wantCalls: 1, wantOutput: 20},
		"it breaks before anything came": {err: truncated, wantCalls: 1},
		"the model is silent":            {err: &llm.Error{Code: llm.CodeTimeout}, wantCalls: 1},
		"the provider has counted":       {chunks: []llm.Chunk{reports, piece}, err: truncated, wantCalls: 1, wantInput: 500, wantOutput: 20},
		"the request is refused":         {err: &llm.Error{Code: llm.CodeRateLimited, Status: 429}},
		"the provider is down":           {err: &llm.Error{Code: llm.CodeUnavailable, Status: 503}},
		"the worker dies":                {chunks: []llm.Chunk{piece}, wantCalls: 1, wantOutput: 20},
		"it dies after a count":          {chunks: []llm.Chunk{reports, piece}, wantCalls: 1, wantInput: 500, wantOutput: 20},
		"it dies before anything came":   {hasRequest: true, wantCalls: 1},
		"it dies before it sends":        {},
		"the request cannot be sent":     {err: &llm.Error{Code: llm.CodeUnavailable, Err: io.EOF}, hasRequest: true, writeErr: io.EOF},
		"no response comes":              {err: &llm.Error{Code: llm.CodeUnavailable, Err: io.EOF}, hasRequest: true, wantCalls: 1},
		"the run ends with the break":    {chunks: []llm.Chunk{piece}, err: &llm.Error{Code: llm.CodeResponseTooLarge}, wantEnd: true, wantCalls: 1, wantOutput: 20},
		"the run ends with a refusal":    {err: &llm.Error{Code: llm.CodeInvalidRequest, Status: 400}, wantEnd: true},
	} {
		t.Run(name, func(t *testing.T) {
			fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("hi") })
			good := fixture.acts.Models["test"]
			fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
				if fixture.calls.Load() > 0 {
					return good.Stream(ctx, req)
				}
				return func(yield func(llm.Chunk, error) bool) {
					fixture.calls.Add(1)
					if trace := httptrace.ContextClientTrace(ctx); c.hasRequest { // as net/http does
						trace.GetConn("example.com:443")
						trace.GotConn(httptrace.GotConnInfo{})
						trace.WroteRequest(httptrace.WroteRequestInfo{Err: c.writeErr})
					}
					for _, chunk := range c.chunks {
						if !yield(chunk, nil) {
							return
						}
					}
					if len(c.chunks) > 0 {
						fixture.awaitShown(ctx, 1)
					}
					if c.err == nil {
						panic("the worker dies")
					}
					yield(nil, c.err)
				}
			})
			ledger := openLedgerAtNoon(t, fixture.log, budget.Day{Amounts: budget.AmountsOf(1_000_000, 0)})
			fixture.acts.Budget, fixture.acts.Prices = ledger, prices(t)
			events, _ := fixture.run("hello")
			got := usageIn(t, events[len(events)-1])
			want := reportedUsage{input: 10, output: 2}
			if c.wantEnd {
				want = reportedUsage{}
			}
			if got.cut.Calls != c.wantCalls || len(got.cut.Usage) != int(c.wantCalls) {
				t.Fatalf("got the usage %+v, want %d estimated calls", got, c.wantCalls)
			}
			if c.wantCalls > 0 {
				estimate := got.cut.Usage[0]
				input := c.wantInput
				if input == 0 {
					input = *estimate.InputTokens
					if prompt == 0 {
						prompt = input
					}
					wantEqual(t, "estimate of the input", input, prompt)
					if input < 8 {
						t.Errorf("estimate of the input = %v, want at least %v", input, 8)
					}
					if input > 30 {
						t.Errorf("estimate of the input = %v, want at most %v", input, 30)
					}
				}
				if *estimate.InputTokens != input || *estimate.OutputTokens != c.wantOutput || estimate.Provider != "test" || estimate.Model != "m" {
					t.Errorf("estimate: got %+v, want %d and %d tokens", estimate, input, c.wantOutput)
				}
				want.input, want.output = want.input+input, want.output+c.wantOutput
			}
			if got.input != want.input || got.output != want.output {
				t.Errorf("usage: got %+v, want %+v", got, want)
			}
			if used := want.input + want.output; used > 0 {
				wantDayUsage(t, fixture, used)
			}
			thread, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "thread has an estimate", thread.Estimated != nil, c.wantCalls > 0)
			if c.wantCalls > 0 && thread.Estimated.Calls != c.wantCalls {
				t.Errorf("estimate of the thread: got %+v (%v), want %d calls", thread.Estimated, err, c.wantCalls)
			}
			if c.wantCalls > 0 {
				wantCost := fmt.Sprintf(`"estimated":%s}`, agents.Money(*got.cut.Usage[0].InputTokens+5*c.wantOutput))
				if cost := string(metadataOf(events[len(events)-1])["perdure.cost"]); !strings.HasSuffix(cost, wantCost) {
					t.Errorf("cost: got %s, want the suffix %s", cost, wantCost)
				}
			}
		})
	}
}

// metadataOf returns the metadata of the event that ends a run.
func metadataOf(e agui.Event) agui.Metadata {
	switch e := e.(type) {
	case *agui.RunFinished:
		return e.Metadata
	case *agui.RunError:
		return e.Metadata
	}
	return nil
}

// TestAnswerWithoutUsageIsEstimated: an answer of a server that reports no usage is estimated.
func TestAnswerWithoutUsageIsEstimated(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{llm.TextDelta{Text: strings.Repeat("word ", 100)}, llm.Finish{Reason: llm.FinishStop, Model: "m", Provider: "p"}}, nil
	})
	events, _ := fixture.run("hello")
	got := usageIn(t, events[len(events)-1])
	if got.cut.Calls != 1 || got.output < 50 || got.input == 0 || got.total != got.input+got.output {
		t.Errorf("usage: got %+v, want an estimate of one call with its total", got)
	}
	thread, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	if thread.Estimated == nil {
		t.Fatal("estimate of the thread = nil, want a value")
	}
	wantEqual(t, "number of estimated calls", thread.Estimated.Calls, 1)
}

// TestCancelledAnswerIsEstimated: the output of a cancelled answer is estimated, with the input as
// the provider has counted it.
func TestCancelledAnswerIsEstimated(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil)
	fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			if !yield(llm.UsageReport{Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(70)}}, nil) || !yield(llm.TextDelta{Text: twenty}, nil) {
				return
			}
			fixture.awaitShown(ctx, 1)
			_, err := fixture.log.RequestCancel(ctx, run, stream.Cancel{})
			if err := errors.Join(err, fixture.log.AnnounceCancel(run)); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	})
	events, result := fixture.run("hello")
	got := usageIn(t, events[len(events)-1])
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "input tokens", got.input, 70)
	wantEqual(t, "output tokens", got.output, 20)
	wantEqual(t, "model calls without an answer", got.cut.Calls, 1)
}

// TestUnfinishedCallsCountForLimit: tokens of cut answers count for the run's limit.
func TestUnfinishedCallsCountForLimit(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil)
	fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			if fixture.calls.Add(1) == 1 {
				if yield(llm.TextDelta{Text: strings.Repeat("word", 2000)}, nil) {
					yield(nil, &llm.Error{Code: llm.CodeTruncated})
				}
				return
			}
			chunks, _ := callAnswer([3]string{"c", "add", `{"a":1,"b":1}`})
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
		}
	})
	fixture.limits = runs.Limits{Turns: 5, Tokens: 1000, Duration: time.Hour, ParallelTools: 1}
	_, result := fixture.run("go")
	wantEqual(t, "code", result.Code, runs.CodeLimitTokens)
	wantEqual(t, "number of model calls", fixture.calls.Load(), 2)
}

// TestUnfinishedSummaryIsInMetrics: a summary whose worker dies is in the metrics, also if the run
// is cancelled and makes no other summary.
func TestUnfinishedSummaryIsInMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	before := otel.GetMeterProvider()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	fixture := setup(t, nil)
	fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			if !strings.Contains(req.Messages[0].Text(), "notes of an assistant") {
				t.Error("model call after the summary: got one, want none")
			}
			if !yield(llm.UsageReport{Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(70), Output: pointer(3)}}, nil) {
				return
			}
			fixture.awaitNote(ctx, stream.LaneMain.Summary())
			if _, err := fixture.log.RequestCancel(ctx, run, stream.Cancel{}); err != nil {
				t.Error(err)
			}
			panic("the worker dies")
		}
	})
	fixture.agent.Context = agents.Context{MaxTokens: 2000, Policy: agents.ContextSummarize}
	fixture.more = conversationOf(20)
	events, result := fixture.run("the very first question")
	got := usageIn(t, events[len(events)-1])
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "model calls without an answer", got.cut.Calls, 1)
	wantEqual(t, "input tokens", got.input, 70)
	if metered := meteredTokens(t, reader); metered != got.input+got.output {
		t.Errorf("metric: got %d tokens, want the usage %+v", metered, got)
	}
}

// meteredTokens returns the sum of the token metric.
func meteredTokens(t *testing.T, reader metric.Reader) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "gen_ai.client.token.usage" {
				for _, point := range h.DataPoints {
					sum += point.Sum
				}
			}
		}
	}
	return int64(sum)
}

// cutOtherAgents answers the model calls of the agent "works" with a text, and cuts the calls of
// other agents permanently.
func cutOtherAgents(t *testing.T) *fixture {
	t.Helper()
	fixture := setup(t, nil)
	fixture.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			chunks, err := textAnswer("done")
			switch {
			case strings.Contains(req.Messages[0].Text(), "You fail."):
				chunks, err = []llm.Chunk{llm.UsageReport{Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(70)}}, llm.TextDelta{Text: twenty}}, &llm.Error{Code: llm.CodeResponseTooLarge}
			case strings.Contains(req.Messages[0].Text(), "You lead.") && len(req.Messages) == 2:
				chunks, _ = callAnswer([3]string{"c", "helper", `{"task":"go"}`})
				chunks[len(chunks)-1] = llm.Finish{Reason: llm.FinishToolCalls, Provider: "test", Model: "m", Usage: llm.Usage{Input: pointer(10), Output: pointer(2)}}
			}
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
		}
	})
	return fixture
}

// TestCallsOfFailedStepsAreCharged: a call that failed permanently is charged by the next record
// after it: the next step, the join of the branches, or the agent that called the subagent.
func TestCallsOfFailedStepsAreCharged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent        string
		wantComplete int64 // calls
		wantCut      int64
	}{
		"a step": {`name: a
model: test/m
steps:
  - {name: one, agent: {instructions: You fail.}, onError: continue}
  - {name: two, agent: {instructions: You work.}}
`, 1, 1},
		"branches": {`name: a
model: test/m
steps:
  - name: all
    onError: continue
    parallel:
      - {name: one, agent: {instructions: You fail.}, onError: continue}
      - {name: two, agent: {instructions: You fail.}, onError: continue}
      - {name: three, agent: {instructions: You work.}}
  - {name: four, agent: {instructions: You work.}}
`, 2, 2},
		"a subagent": {`name: a
model: test/m
instructions: You lead.
tools: ["agent:helper"]
`, 2, 1},
		"a subagent in a branch": {`name: a
model: test/m
steps:
  - name: all
    parallel:
      - {name: one, agent: {instructions: You lead., tools: ["agent:helper"]}}
      - {name: two, agent: {instructions: You work.}}
`, 3, 1},
		"the last step": {`name: a
model: test/m
steps:
  - {name: one, agent: {instructions: You work.}}
  - {name: two, agent: {instructions: You fail.}}
`, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := cutOtherAgents(t)
			fixture.agent = parseDefinition(t, c.agent)
			h := subagentDefinition("helper")
			h.Instructions = "You fail."
			fixture.others = map[string]*agents.Definition{"helper": h}
			events, result := fixture.run("go")
			got := usageIn(t, events[len(events)-1])
			want := reportedUsage{input: 10*c.wantComplete + 70*c.wantCut, output: 2*c.wantComplete + 20*c.wantCut}
			if got.input != want.input || got.output != want.output || got.cut.Calls != c.wantCut {
				t.Errorf("got %+v with the usage %+v, want %+v", result, got, want)
			}
		})
	}
}

// awaitNote waits until an attempt has written its note to a lane of the run: the first record
// after the attempt record.
func (f *fixture) awaitNote(ctx context.Context, lane stream.Lane) {
	f.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		last, err := f.log.Last(ctx, f.log.LaneSubject(run, lane))
		if err != nil {
			f.t.Error(err)
			return
		}
		if last != nil && last.Frame > 0 {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			f.t.Error("the attempt has written no note")
			return
		}
	}
}
