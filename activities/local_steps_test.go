package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// blockedModel returns a fixture whose first model call blocks until release is closed, and then
// answers with chunks or fails. began is closed when it is called. Further calls answer at once.
func blockedModel(t *testing.T, failure error) (f *fixture, began, release chan struct{}) {
	t.Helper()
	began, release = make(chan struct{}), make(chan struct{})
	return setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			close(began)
			<-release
			if failure != nil {
				return nil, failure
			}
		}
		return []llm.Chunk{llm.TextDelta{Text: "whole"}, llm.Finish{Reason: llm.FinishStop}}, nil
	}), began, release
}

// wantWhole checks that the run has ended well, with one answer.
func (f *fixture) wantWhole(result runs.Result) {
	f.t.Helper()
	wantEqual(f.t, "outcome", result.Outcome, runs.OutcomeSuccess)
	m := f.conversation()
	mustEqual(f.t, "number of messages", len(m), 2)
	wantEqual(f.t, "answer", m[1].Content.Text(), "whole")
}

// awaitLeft waits until a model call has left its workflow task.
func (f *fixture) awaitLeft() {
	for tick := time.Tick(time.Millisecond); !strings.Contains(f.history.String(), `"continuesOn":"process"`); {
		<-tick
	}
}

// TestModelCallLeavesTask: a call that takes long, or whose thread has an update, leaves its workflow
// task. The activity that follows awaits the same call.
func TestModelCallLeavesTask(t *testing.T) {
	t.Parallel()
	for name, updated := range map[string]bool{"after a time": false, "for an update": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, began, release := blockedModel(t, nil)
			left := make(chan time.Duration, 1)
			go func() {
				<-began
				since := time.Now()
				if updated {
					_ = f.log.AnnounceUpdate(run.Thread)
				}
				f.awaitLeft()
				left <- time.Since(since)
				close(release)
			}()
			_, result := f.run("hello")
			f.wantWhole(result)
			wantEqual(t, "number of model calls", f.calls.Load(), 1)
			if took := <-left; updated && took > time.Second {
				t.Errorf("the call has left its task %s after it began, want it to leave at once", took)
			}
		})
	}
}

// TestModelCallFailsAfterTask: a call that has left its task and then fails is attempted again, as the
// second attempt of the step.
func TestModelCallFailsAfterTask(t *testing.T) {
	t.Parallel()
	f, began, release := blockedModel(t, &llm.Error{Code: llm.CodeUnavailable, Status: 529})
	go func() {
		<-began
		_ = f.log.AnnounceUpdate(run.Thread)
		f.awaitLeft()
		close(release)
	}()
	_, result := f.run("hello")
	f.wantWhole(result)
	wantEqual(t, "number of model calls", f.calls.Load(), 2)
	if logged := f.logged.String(); !strings.Contains(logged, `"failures":"1 of 8"`) {
		t.Errorf("log = %q, want the first failure", logged)
	}
}

// TestModelCallFailsWithinTask: a call that fails within its task is attempted again by an activity,
// up to as many failures as a step may have.
func TestModelCallFailsWithinTask(t *testing.T) {
	t.Parallel()
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return nil, &llm.Error{Code: llm.CodeUnavailable, Status: 529}
	})
	_, result := f.run("hello")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
	wantEqual(t, "code", result.Code, string(llm.CodeUnavailable))
	wantEqual(t, "number of model calls", f.calls.Load(), 8)
}

// TestLargeAnswerLeavesTask: a step whose answer is large leaves its workflow task, because the answers
// of many steps are reported with one task. It is not executed again.
func TestLargeAnswerLeavesTask(t *testing.T) {
	t.Parallel()
	tool := tools.Func(strings.Repeat("note_", 10), "notes", func(_ context.Context, in journalEntry) (string, error) { return in.Note, nil })
	f := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n > 1 {
			return []llm.Chunk{llm.TextDelta{Text: "done"}, llm.Finish{Reason: llm.FinishStop}}, nil
		}
		var calls [][3]string
		for i := range 60 {
			calls = append(calls, [3]string{fmt.Sprint("x", i), tool.Spec().Name, `{"note":"n"}`})
		}
		return callAnswer(calls...)
	}, tool)
	f.limits.ParallelTools = 64
	_, result := f.run("hello")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if n := strings.Count(f.history.String(), `"continuesOn":"process"`); n != 1 {
		t.Errorf("steps that have left their task = %d, want 1", n)
	}
	wantEqual(t, "number of model calls", f.calls.Load(), 2)
}

// TestLeavingWorkerBeginsNoCall: a worker that leaves makes no call within a workflow task. An activity
// of any worker makes it.
func TestLeavingWorkerBeginsNoCall(t *testing.T) {
	t.Parallel()
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{llm.TextDelta{Text: "whole"}, llm.Finish{Reason: llm.FinishStop}}, nil
	})
	f.acts.Local.Leave(t.Context())
	_, result := f.run("hello")
	f.wantWhole(result)
	if !strings.Contains(f.history.String(), `"continuesOn":"`+runs.TaskQueue+`"`) {
		t.Errorf("data of Temporal = %s, want a call on the main task queue", f.history.String())
	}
	wantEqual(t, "number of model calls", f.calls.Load(), 1)
}

// TestStoppedCalls: Stop ends the calls, and waits for them.
func TestStoppedCalls(t *testing.T) {
	t.Parallel()
	calls := activities.NewLocalSteps("process")
	calls.Stop()
	calls.Leave(t.Context())
	calls.Stop()
}
