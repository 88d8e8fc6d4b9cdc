package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// noEffectTool is a tool without an effect.
func noEffectTool(name string, options ...tools.Option) tools.Tool {
	return tools.Func(name, "does nothing", func(context.Context, struct{}) (string, error) { return name, nil }, options...)
}

// TestAnswersHaveTheQueuesOfCalls: the workflow receives the task queue and the sequence of a call,
// and neither for ordinary calls.
func TestAnswersHaveTheQueuesOfCalls(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return callAnswer([3]string{"x0", "drawer", "{}"}, [3]string{"x1", "lamp", "{}"}, [3]string{"x2", "bell", "{}"},
			[3]string{"x3", "drawer", "{}"}, [3]string{"x4", "main", "{}"}, [3]string{"x5", "made_up", "{}"})
	}, noEffectTool("drawer", tools.TaskQueue("till"), tools.Sequential()), noEffectTool("lamp", tools.TaskQueue("till")),
		noEffectTool("bell", tools.Sequential()), noEffectTool("main", tools.TaskQueue(runs.TaskQueue)))
	answer, err := fixture.askModel("r2", "1/model", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range answer.Calls {
		got = append(got, fmt.Sprintf("%s %s %d", c.Tool, c.Queue, c.Sequence))
	}
	if want := "drawer till 1, lamp till 0, bell  2, drawer till 1, main  0,   0"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if answer.QueuedOrSequencedCount != 4 {
		t.Errorf("calls with a task queue or a sequence: got %d, want 4", answer.QueuedOrSequencedCount)
	}
	body, err := json.Marshal(answer.Calls[4])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "queue") {
		t.Errorf("message = %q, want no %q", string(body), "queue")
	}
	if strings.Contains(string(body), "sequence") {
		t.Errorf("message = %q, want no %q", string(body), "sequence")
	}
}

// TestQueuedCallsAreBounded: an answer with more such calls than the workflow can receive ends
// the run, and none of its calls is made.
func TestQueuedCallsAreBounded(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	fixture := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		var calls [][3]string
		for i := range runs.MaxCalls + 1 {
			calls = append(calls, [3]string{fmt.Sprint("x", i), "count", "{}"})
		}
		return callAnswer(calls...)
	}, tools.Func("count", "counts", func(context.Context, struct{}) (string, error) { made.Add(1); return "", nil }, tools.Sequential()))
	fixture.limits.ParallelTools = 100
	_, result := fixture.run("go")
	wantEqual(t, "code", result.Code, runs.CodeLimitParallelTools)
	wantEqual(t, "number of calls", made.Load(), 0)
}

// agentWithMissingTools is a fixture whose agent has further tools when its calls are made. This
// worker lacks them.
type agentWithMissingTools struct {
	*fixture
	looks atomic.Int32
}

func (m *agentWithMissingTools) Revision(ctx context.Context, tenant, agent, revision string) (*agents.Definition, error) {
	d, err := m.fixture.Revision(ctx, tenant, agent, revision)
	if err == nil && m.looks.Add(1) == 2 {
		others := *d
		others.Tools = append([]string{"other", "mcp:away/*"}, d.Tools...)
		return &others, nil
	}
	return d, err
}

// TestWorkerWithOneTool: a worker that serves a task queue need not have the agent's
// other tools.
func TestWorkerWithOneTool(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"x0", "drawer", "{}"})
		}
		return textAnswer("done")
	}, noEffectTool("drawer"))
	fixture.acts.Agents, fixture.acts.ToolGrace = &agentWithMissingTools{fixture: fixture}, time.Nanosecond
	events, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	for _, event := range events {
		if r, ok := event.(*agui.ToolCallResult); ok && r.Content.Text() != "drawer" {
			t.Errorf("result = %q, want %q", r.Content.Text(), "drawer")
		}
	}
}

// servedQueues are task queues with workers.
type servedQueues []string

func (s servedQueues) Served(queue string) bool { return slices.Contains(s, queue) }

// TestAwaitWorkersOfTaskQueue: a task queue without workers is checked again until the
// grace period ends.
func TestAwaitWorkersOfTaskQueue(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil)
	fixture.acts.Queues = servedQueues{"till"}
	for _, c := range []struct {
		queue       string
		grace       time.Duration
		wantRetry   bool
		wantFailure bool
	}{{"till", time.Nanosecond, false, false}, {"floor", time.Hour, true, false}, {"floor", time.Nanosecond, false, true}} {
		fixture.acts.ToolGrace = c.grace
		env := newActivityEnv()
		env.RegisterActivity(fixture.acts.AwaitQueue)
		_, err := env.ExecuteActivity(fixture.acts.AwaitQueue, runs.AwaitQueue{Queue: c.queue})
		var app *temporal.ApplicationError
		if !errors.As(err, &app) {
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "wait is repeated", c.wantRetry, false)
			wantEqual(t, "wait fails for good", c.wantFailure, false)
			continue
		}
		wantEqual(t, "type of the error", app.Type(), "tool_unavailable")
		wantEqual(t, "error is not retryable", app.NonRetryable(), c.wantFailure)
		wantEqual(t, "error has a retry delay", app.NextRetryDelay() > 0, c.wantRetry)
	}
}
