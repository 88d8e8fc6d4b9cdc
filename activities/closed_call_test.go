package activities_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// cancelRun cancels the run of the fixture as the API does.
func (f *fixture) cancelRun(ctx context.Context) {
	f.t.Helper()
	if _, err := f.log.RequestCancel(ctx, run, stream.Cancel{}); err != nil {
		f.t.Error(err)
	}
	if err := f.log.AnnounceCancel(run); err != nil {
		f.t.Error(err)
	}
	f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
}

// stopInArguments makes the model call a tool, and cancels the run in the middle of the arguments.
func (f *fixture) stopInArguments(tool string) {
	f.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		f.calls.Add(1)
		return func(yield func(llm.Chunk, error) bool) {
			_ = yield(llm.ToolCallStart{ID: "x", Name: tool}, nil) && yield(llm.ToolCallDelta{Arguments: `{"text":"half`}, nil)
			f.cancelRun(ctx)
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	})
}

// stopBeforeCalls makes the model call a tool, and cancels the run before the call is made.
func (f *fixture) stopBeforeCalls(tool string) {
	f.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		f.calls.Add(1)
		return func(yield func(llm.Chunk, error) bool) {
			chunks, _ := callAnswer([3]string{"x", tool, `{"text":"whole"}`})
			for _, c := range chunks {
				_ = yield(c, nil)
			}
			f.cancelRun(ctx)
		}
	})
}

// failBeforeCalls makes the model call a tool more often than the run allows.
func (f *fixture) failBeforeCalls(tool string) {
	f.limits.ParallelTools = 1
	f.acts.Models["test"] = llm.ModelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Chunk, error] {
		f.calls.Add(1)
		return func(yield func(llm.Chunk, error) bool) {
			chunks, _ := callAnswer([3]string{"x", tool, `{"text":"whole"}`}, [3]string{"y", tool, `{"text":"whole"}`})
			for _, c := range chunks {
				_ = yield(c, nil)
			}
		}
	})
}

// wantNoOpenCalls checks that each call of the conversation has a result, which has the subagent of
// the call.
func (f *fixture) wantNoOpenCalls() {
	f.t.Helper()
	answered := map[string]string{}
	for _, m := range f.conversation() {
		if m.Role == agui.RoleTool {
			answered[m.ToolCallID] = "of " + m.SubagentRunID
		}
	}
	for _, m := range f.conversation() {
		for _, c := range m.ToolCalls {
			wantEqual(f.t, "result of "+c.Name+c.Arguments, answered[c.ID], "of "+m.SubagentRunID)
		}
	}
}

// TestEndOfRunClosesCalls: after a run that was cancelled or has failed, each call has a result,
// for clients and for the thread, and the state is the one before the prediction. No tool was
// called.
func TestEndOfRunClosesCalls(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(f *fixture){
		"of a server tool": func(*fixture) {},
		"of a client tool": func(f *fixture) {
			f.agent.Tools = []string{"client:*"}
			f.input.Tools = []agui.Tool{{Name: "write", Description: "the client's", Parameters: json.RawMessage(`{}`)}}
		},
		"with an approval": func(f *fixture) { f.agent.Approvals = []agents.Approval{{Tools: []string{"write"}}} },
	}
	ends := map[string]struct {
		end         func(f *fixture, tool string)
		wantOutcome runs.Outcome
	}{
		"cancelled in the arguments":     {(*fixture).stopInArguments, runs.OutcomeCancelled},
		"cancelled before the call":      {(*fixture).stopBeforeCalls, runs.OutcomeCancelled},
		"failed before the call is made": {(*fixture).failBeforeCalls, runs.OutcomeError},
	}
	for kind, prepare := range kinds {
		for name, tt := range ends {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				write := tools.Func("write", "", func(context.Context, struct{ Text string }) (string, error) {
					t.Error("the tool was called")
					return "", nil
				})
				fixture := setup(t, nil, write)
				fixture.input.State = []byte(`{"document":"before"}`)
				fixture.agent.State.Predict = []agents.Prediction{{Tool: "write", Argument: "text", Key: "document"}}
				prepare(fixture)
				tt.end(fixture, "write")
				events, result := fixture.run("go")
				wantEqual(t, "outcome", result.Outcome, tt.wantOutcome)
				wantEqual(t, "state", fixture.stateOf(events), `{"document":"before"}`)
				fixture.wantShownConversation(events)
				answered := map[string]string{}
				var calls []agui.ToolCall
				for _, m := range fixture.conversation() {
					calls = append(calls, m.ToolCalls...)
					if m.Role == agui.RoleTool {
						answered[m.ToolCallID] = m.Error
					}
				}
				if len(calls) == 0 {
					t.Fatal("the conversation has no call")
				}
				for _, c := range calls {
					wantEqual(t, "result of "+c.Arguments, answered[c.ID], snapshot.CallCancelled)
				}
				got := typesOf(events)
				if !strings.Contains(got, "STATE_DELTA") || strings.Count(got, "TOOL_CALL_RESULT") != len(calls) {
					t.Errorf("events = %s, want a prediction and %d results", got, len(calls))
				}
			})
		}
	}
}
