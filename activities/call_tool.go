package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// CallTool is tool.call.v1: it makes one tool call, and writes its result to the log. A failure of
// the tool is a result for the model. The call of a tool step also advances the pipeline.
func (a *Activities) CallTool(ctx context.Context, in runs.ToolCall) (answer runs.ToolAnswer, err error) {
	ctx = inStep(ctx, in.Step)
	defer contain(ctx, &err)
	began := time.Now()
	work, leave, err := a.enterCall(ctx, in)
	if err != nil {
		return answer, fail(ctx, err)
	}
	defer leave()
	if answer, err = a.callTool(work, in); err == nil {
		answer.Advanced, _ = a.chained(ctx, in, answer, began) // an optimization: otherwise the workflow schedules the advance
	}
	return answer, fail(ctx, err)
}

// enterCall is enter, but lets a lasting call end.
func (a *Activities) enterCall(ctx context.Context, in runs.ToolCall) (context.Context, func(), error) {
	if in.OutlastsCancel {
		return a.attend(ctx)
	}
	return a.enter(ctx, in.Step)
}

func (a *Activities) callTool(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
	opened, err := a.openToolStep(ctx, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	attempt, done, err := a.Log.Begin(ctx, toolPlace(in))
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if done != nil {
		return recordedToolAnswer(ctx, done)
	}
	defer attempt.Close()
	ctx, cancel := attempt.Context(ctx)
	defer cancel()
	thread, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, opened)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	call, err := findCall(thread, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	result, outcome, err := a.executeDecision(ctx, in, &call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if outcome == "" && in.Cancelled {
		result, outcome = tools.Failed(callCancelled), runs.OutcomeCancelled
		if attempt.Resumed() {
			result = tools.Failed(outcomeUnknown)
		}
	}
	asked, err := a.inquiry(ctx, in, call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	handed := false
	switch {
	case outcome != "":
	case in.HandOverTo != "":
		result, outcome, handed, err = a.handOver(ctx, in, call)
	default:
		result, outcome, err = a.runTool(ctx, in, call, asked, thread.State, attempt)
	}
	if asks, ok := errors.AsType[*tools.Raised](err); ok && asked.number() < tools.MaxQuestions {
		return asked.raise(ctx, in, call, attempt, asks, opened)
	} else if ok {
		result, outcome, err = tools.Failed(tooManyQuestions), runs.OutcomeError, nil
	}
	if err != nil {
		return runs.ToolAnswer{}, a.tellLacking(ctx, in.Step, attempt, err)
	}
	return finishTool(ctx, in, call, attempt, result, runs.ToolAnswer{Outcome: outcome, Opened: opened, HandedOver: handed})
}

func (a *Activities) openToolStep(ctx context.Context, in runs.ToolCall) (uint64, error) {
	place := agentPlace(in.Step, in.Open)
	if in.Chained != nil {
		place.Then = in.Chained.ID
	}
	if in.Announces != nil {
		return a.announce(ctx, place, in.Step, *in.Announces)
	}
	if in.Opens == nil {
		return a.openStep(ctx, place, in.Step, nil)
	}
	return a.Snapshots.OpenRun(ctx, place, opening(in.Agent, in.Revision, *in.Opens), false, &agui.StepStarted{StepName: in.Name})
}

// Results of calls that did not end by themselves.
const (
	outcomeUnknown = "The call was interrupted after it had begun. Whether it took effect is unknown; it was not repeated."
	callCancelled  = "The call was cancelled."
	callAbandoned  = "The call was cancelled but did not stop. Whether it took effect is unknown."
	callOverdue    = "The call did not end in its time. Whether it took effect is unknown."
	callBroken     = "The call broke off. Whether it took effect is unknown."
)

// runTool calls the tool. A tool that may have had its effect, and is not idempotent, is not called
// again.
func (a *Activities) runTool(ctx context.Context, in runs.ToolCall, call agui.ToolCall, asked *inquiry, state json.RawMessage, attempt *stream.Attempt) (tools.Result, runs.Outcome, error) {
	definition, err := a.definition(ctx, in.Step)
	if err != nil {
		return tools.Result{}, "", err
	}
	tool, err := a.findTool(ctx, definition, call.Name)
	if err != nil {
		return tools.Result{}, "", err
	}
	if tool == nil {
		return tools.Failed(notCallable(definition, call)), runs.OutcomeError, nil
	}
	if attempt.Resumed() && !tool.Spec().Idempotent {
		return tools.Failed(outcomeUnknown), runs.OutcomeError, nil
	}
	// Temporal's cancellation may arrive seconds after the announcement. A lasting call that may
	// have been made is made again all the same, because its result has to be known.
	if wanted, err := a.cancelRequested(ctx, in.Step); err != nil {
		return tools.Result{}, "", err
	} else if wanted && !(in.OutlastsCancel && attempt.Resumed()) {
		return tools.Failed(callCancelled), runs.OutcomeCancelled, nil
	}
	reports := narration.NewReporter(ctx, runOf(in.Run), call.ID, state, attempt.Emit)
	defer reports.Close()
	ctx, end := telemetry.StartTool(ctx, call.Name, call.ID)
	result, err := callOrAbandon(ctx, tool, tools.Call{
		ID: call.ID, Arguments: json.RawMessage(call.Arguments), IdempotencyKey: asked.key(in, call), Reporter: reports,
		Asks: true, Answers: asked.answers,
	})
	_, asks := errors.AsType[*tools.Raised](err)
	end(kindOf(cmp.Or(err, result.Cause)))
	switch {
	case asks:
		return tools.Result{}, "", err
	case errors.Is(err, errAbandoned) && cancelled(ctx, err):
		return tools.Failed(callAbandoned), runs.OutcomeCancelled, nil
	case err != nil && cancelled(ctx, err):
		return tools.Failed(callCancelled), runs.OutcomeCancelled, nil
	case err != nil && lastAttempt(ctx, tool.Spec(), err):
		return finalFailure(err), runs.OutcomeError, nil
	case err != nil:
		return tools.Result{}, "", err
	case result.IsError:
		return result, runs.OutcomeError, nil
	}
	return result, runs.OutcomeSuccess, nil
}

// findCall reads the call of the model. Its arguments are content, so they come from the log.
func findCall(thread *snapshot.Snapshot, in runs.ToolCall) (agui.ToolCall, error) {
	for i := len(thread.Entries) - 1; i >= 0; i-- {
		m := thread.Entries[i].Message
		if m.ID != in.MessageID {
			continue
		}
		at := in.Index
		if in.CallID != "" {
			at = slices.IndexFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == in.CallID })
		}
		if at >= 0 && at < len(m.ToolCalls) {
			return m.ToolCalls[at], nil
		}
	}
	return agui.ToolCall{}, temporal.NewNonRetryableApplicationError("the tool call is not in the conversation", runs.CodeInternal, nil)
}

// finishTool writes the result and some events, also of a cancelled call, whose context has ended.
func finishTool(ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, result tools.Result, answer runs.ToolAnswer, before ...agui.Event) (runs.ToolAnswer, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	message := agui.Message{
		ID: runOf(in.Run).Identify("res", call.ID), Role: agui.RoleTool, ToolCallID: call.ID, Content: prompt.ContentOf(result),
	}
	if result.IsError {
		message.Error = result.Content
	}
	recorded, err := json.Marshal(answer)
	if err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	told := &stream.Result{Messages: []agui.Message{message}, Scope: scopeOf(in.Place), Answer: recorded}
	told.Decided, told.Edited = decisionRecord(in, call.Name, call.Arguments), editedArguments(in, call)
	events := append(before, &agui.ToolCallResult{MessageID: message.ID, ToolCallID: call.ID, Content: message.Content, Role: agui.RoleTool})
	if answer.HandedOver {
		told.Handoff = &stream.Handoff{From: in.Agent, To: in.HandOverTo}
		shown, err := told.Handoff.Event()
		if err != nil {
			return answer, err
		}
		events = append(events, shown)
	}
	answer.Seq, err = attempt.Finish(ctx, told, events...)
	return answer, err
}

func recordedToolAnswer(ctx context.Context, done *stream.Record) (runs.ToolAnswer, error) {
	var answer runs.ToolAnswer
	err := recorded(ctx, done, &answer)
	answer.Seq = done.Seq
	return answer, err
}
