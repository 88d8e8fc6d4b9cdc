package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// This file is one tool call of a model or of a tool step. The workflow schedules the calls of a
// turn in parallel, each on a lane of its own. callTool has the frame of the attempt, runTool calls
// the tool. Decisions are in decision_result.go, questions of tools in question.go.

// CallTool is tool.call.v1: it makes one tool call, and writes the result to the log. A failure of
// the tool is a result for the model, not an error. Errors are an unavailable server behind a tool
// with attempts left, and failures of the log.
func (a *Activities) CallTool(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
	return executeStep(ctx, a, in.Step, func(ctx context.Context) (runs.ToolAnswer, error) {
		work, release := ctx, context.CancelFunc(func() {})
		// A compensation has to know whether the call took effect, so a cancel does not end it.
		if !in.OutlastsCancel {
			work, release = a.cancellable(ctx, in.Step)
		}
		defer release()
		return a.callTool(work, in)
	})
}

// callTool opens the step, takes the lane, carries out the decision about the call, and makes the
// call unless the decision is its result. It ends with one of two done records: the result of the
// call, or a question of the tool (OutcomeInterrupt).
func (a *Activities) callTool(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
	attempt, opened, done, err := a.beginToolCall(ctx, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if done != nil {
		return recordedToolAnswer(ctx, done)
	}
	defer attempt.Close()
	ctx, cancel := attempt.Context(afterUnfinished(ctx, in.Step, attempt))
	defer cancel()
	if in.IsRemote {
		return recordRemoteAnswer(ctx, in, attempt, opened)
	}
	// The arguments of the call, the state and the decisions are content: they come from the log.
	snap, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, opened)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	call, err := findCall(snap, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	result, outcome, err := a.executeDecision(ctx, in, &call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	// The run was cancelled, and this activity only records the decision. If an earlier attempt has
	// begun, the tool may have been called.
	if outcome == "" && (in.Cancelled || in.Stops && !in.OutlastsCancel) {
		result, outcome = tools.Failed(callCancelled), runs.OutcomeCancelled
		if attempt.FollowsUnfinished() {
			result = tools.Failed(outcomeUnknown)
		}
	}
	if in.ForClient && outcome == "" {
		return leaveToClient(ctx, in, call, attempt, opened)
	}
	inquiry, err := a.readInquiry(ctx, in, call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	sentWithInput := in.Decision != nil && in.Decision.Kind == runs.DecisionToolResult && in.Decision.Proposal == 0
	if sentWithInput {
		result, outcome = sentResult(snap, call.ID)
	}
	handedOver := false
	var change *stateChange
	var reported []json.RawMessage // changes of the state by the tool itself
	switch {
	// The client has made the call.
	case outcome == runs.OutcomeSuccess && in.Decision != nil && in.Decision.Kind == runs.DecisionToolResult && !result.IsError:
		change, err = a.clientStateChange(ctx, in, call, result)
	// The decision, or the cancel, is the outcome. The tool is not called.
	case outcome != "":
	case in.HandOverTo != "":
		result, outcome, handedOver, err = a.handOver(ctx, in, call)
	default:
		reports := narration.NewReporter(ctx, runOf(in.Run), call.ID, snap.State, attempt.Emit)
		var run tools.Run
		if run, err = a.runOfCall(ctx, in, inquiry, snap); err != nil {
			return runs.ToolAnswer{}, err
		}
		result, outcome, change, err = a.runTool(ctx, in, call, inquiry, reports, attempt, run)
		reported = reports.StatePatches()
	}
	// A question ends the call without a result. The workflow schedules the call again with the
	// answer.
	if raised, ok := errors.AsType[*tools.Raised](err); ok && inquiry.questionCount() < tools.MaxQuestions {
		return inquiry.endWithQuestion(ctx, in, call, attempt, raised, opened)
	} else if ok {
		result, outcome, err = tools.Failed(tooManyQuestions), runs.OutcomeError, nil
	}
	if err != nil {
		return runs.ToolAnswer{}, a.reportFailure(ctx, attempt, err)
	}
	end := toolEnd{result: result, answer: runs.ToolAnswer{Outcome: outcome, Opened: opened, HandedOver: handedOver}, hasMessage: sentWithInput}
	if result.IsError {
		end.before = restorePredicted(snap, call, reported)
	}
	if change != nil {
		return a.finishWithChange(ctx, in, call, attempt, end, change, snap)
	}
	return finishCall(ctx, in, call, attempt, end)
}

// beginToolCall opens the step of the turn (see openToolStep) and begins an attempt of the call (see
// doneBefore).
func (a *Activities) beginToolCall(ctx context.Context, in runs.ToolCall) (attempt *stream.Attempt, opened uint64, done *stream.Record, err error) {
	place := toolPlace(in)
	opened, err = a.openToolStep(ctx, in)
	if err == nil {
		attempt, done, err = a.Log.Begin(ctx, place)
	}
	if err != nil {
		done, err = a.doneBefore(ctx, place, err)
	}
	return attempt, opened, done, err
}

// openToolStep writes the lifecycle events of the step that all calls of a turn share; the first of
// the concurrent activities writes them. A call may also be the first step of a run (Beginning) or
// of a subagent (Announces), when decisions resume it. It returns the record that the conversation
// must contain.
func (a *Activities) openToolStep(ctx context.Context, in runs.ToolCall) (uint64, error) {
	place := agentPlace(in.Step, in.TurnStepID)
	if in.Announces != nil {
		return a.announceSubagent(ctx, place, in.Step, *in.Announces)
	}
	if in.Beginning == nil {
		return a.openStep(ctx, place, in.Step, nil)
	}
	return a.Snapshots.OpenRun(ctx, place, runOpening(in.Agent, in.Revision, *in.Beginning), &agui.StepStarted{StepName: in.Name})
}

// Results of calls that did not end by themselves.
const (
	// outcomeUnknown: an attempt died after it had begun the call.
	outcomeUnknown = "The call was interrupted after it had begun. Whether it took effect is unknown; it was not repeated."
	// callCancelled: the call was not made, or the tool returned when its context ended.
	callCancelled = snapshot.CallCancelled
	// callAbandoned: the tool ignored the end of its context.
	callAbandoned = "The call was cancelled but did not stop. Whether it took effect is unknown."
	// callOverdue: the tool ignored its own timeout.
	callOverdue = "The call exceeded its timeout. Whether it took effect is unknown."
	// callBroken: all attempts failed, and the error has no text for the model.
	callBroken = "The call failed without an answer. Whether it took effect is unknown."
)

// runTool calls the tool, and returns its result with the outcome, and the change of the state that
// follows a success (nil = none). A tool that is not idempotent is not called if an earlier attempt
// may have called it. The error is a *tools.Raised if the tool asks a question, a lackingError if
// this worker does not have the tool, and otherwise a failure after which the call may be attempted
// again.
func (a *Activities) runTool(
	ctx context.Context, in runs.ToolCall, call agui.ToolCall, inquiry *inquiry, reports *narration.Reporter, attempt *stream.Attempt, run tools.Run,
) (tools.Result, runs.Outcome, *stateChange, error) {
	definition, err := a.definition(ctx, in.Step)
	if err != nil {
		return tools.Result{}, "", nil, err
	}
	tool, err := a.findTool(ctx, definition, call.Name)
	if err != nil {
		return tools.Result{}, "", nil, err
	}
	// The model has made up the name, or the call is of a subagent or handoff that cannot be
	// carried out.
	if tool == nil {
		return tools.Failed(uncallableResult(definition, call)), runs.OutcomeError, nil, nil
	}
	// A tool that is not idempotent is called at most once: the model learns that the outcome is
	// unknown.
	if attempt.FollowsUnfinished() && !tool.Spec().Idempotent {
		return tools.Failed(outcomeUnknown), runs.OutcomeError, nil, nil
	}
	// Temporal's cancellation may arrive seconds after the announcement. A call that outlasts a
	// cancel and may have been made is made again all the same, because its result has to be known.
	if cancelRequested, err := a.cancelRequested(ctx, in.Step); err != nil {
		return tools.Result{}, "", nil, err
	} else if cancelRequested && !(in.OutlastsCancel && attempt.FollowsUnfinished()) {
		return tools.Failed(callCancelled), runs.OutcomeCancelled, nil, nil
	}
	// Reports are events of this attempt. Close stops those of a tool that was abandoned.
	defer reports.Close()
	ctx, end := telemetry.StartTool(ctx, call.Name, call.ID)
	result, err := callOrAbandon(ctx, tool, tools.Call{
		ID: call.ID, Arguments: json.RawMessage(call.Arguments), IdempotencyKey: inquiry.idempotencyKey(in, call), Reporter: reports,
		Asks: true, Answers: inquiry.answers, Run: run,
	})
	raised, isQuestion := errors.AsType[*tools.Raised](err)
	end(errorKind(cmp.Or(err, result.Cause)))
	switch {
	// A question is the expected end of a call, not a failure of the tool.
	case isQuestion:
		if refusal := boundWait(raised, definition.Limits.MaxWait()); refusal != "" {
			return tools.Failed(refusal), runs.OutcomeError, nil, nil
		}
		return tools.Result{}, "", nil, err
	case errors.Is(err, errAbandoned) && isCancelled(ctx, err):
		return tools.Failed(callAbandoned), runs.OutcomeCancelled, nil, nil
	case err != nil && isCancelled(ctx, err):
		return tools.Failed(callCancelled), runs.OutcomeCancelled, nil, nil
	// After the last attempt the model continues with the failure as the result.
	case err != nil && isLastAttempt(ctx, tool.Spec(), err):
		return finalResult(err), runs.OutcomeError, nil, nil
	case err != nil:
		return tools.Result{}, "", nil, err
	case result.IsError:
		return result, runs.OutcomeError, nil, nil
	}
	return result, runs.OutcomeSuccess, newStateChange(definition.State, call, result, reports.StatePatches()), nil
}

// findCall returns the call of the model with its arguments, by its ID or, without one, by its
// index in the message. It searches from the end, because calls are of recent messages. The error
// is final: a call that the workflow knows must be in the conversation.
func findCall(snap *snapshot.Snapshot, in runs.ToolCall) (agui.ToolCall, error) {
	for i := len(snap.Entries) - 1; i >= 0; i-- {
		m := snap.Entries[i].Message
		if m.ID != in.MessageID {
			continue
		}
		index := in.Index
		if in.CallID != "" {
			index = slices.IndexFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == in.CallID })
		}
		if index >= 0 && index < len(m.ToolCalls) {
			return m.ToolCalls[index], nil
		}
	}
	return agui.ToolCall{}, temporal.NewNonRetryableApplicationError("the tool call is not in the conversation", runs.CodeInternal, nil)
}

// recordedToolAnswer returns the answer in the done record of an earlier attempt.
func recordedToolAnswer(ctx context.Context, done *stream.Record) (runs.ToolAnswer, error) {
	var answer runs.ToolAnswer
	err := decodeAnswer(ctx, done, &answer)
	answer.Seq = done.Seq
	return answer, err
}
