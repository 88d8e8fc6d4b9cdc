package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// This file writes how a call ended: the done record with its result.

// toolEnd is how a call ended.
type toolEnd struct {
	result tools.Result
	answer runs.ToolAnswer
	before []agui.Event // events that precede the result
	// closed are results that the record adds before the result: of calls of a subagent.
	closed []agui.Message
	// hasMessage tells that the conversation has the result: the client sent it with its input.
	hasMessage bool
	// onlyAfter is the mark after which the record is written, or else the error is
	// stream.ErrStale; nil = any.
	onlyAfter *uint64
}

// finishCall writes the done record: the result as a tool message, the decision that was carried
// out, and the events. It works after ctx has ended, because the tool may have had its effect. It
// sets answer.Seq after the encoding: the record does not know its own sequence.
func finishCall(ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, end toolEnd) (runs.ToolAnswer, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	toolResult, answer := end.result, end.answer
	message := agui.Message{
		ID: runOf(in.Run).Identify("res", call.ID), Role: agui.RoleTool, ToolCallID: call.ID, Content: prompt.ContentOf(toolResult),
	}
	if toolResult.IsError {
		stream.SetFailed(&message, toolResult.Content)
	}
	recorded, err := json.Marshal(answer)
	if err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	result := &stream.Result{Messages: append(end.closed, message), Scope: scopeOf(in.PipelineStep), Visibility: visibilityOf(in.Step, in.PipelineStep), Answer: recorded}
	if end.hasMessage {
		return writeToolEnd(ctx, attempt, end, answer, &stream.Result{Answer: recorded}, end.before)
	}
	// The call had an interrupt, so clients see how it ended.
	if in.IsHidden() && (in.Decision != nil || in.QuestionRecord > 0) {
		result.ShownCalls = []string{call.ID}
	}
	// The record of the decision is in the same record as the result: both count, or neither.
	result.Decided, result.Edited = decisionRecord(in, call.Name, call.Arguments), editedArguments(in, call)
	events := append(end.before, agui.ToolCallResultOf(message))
	// The handoff takes effect with the result of its call. Later steps and runs read it from the
	// snapshot.
	if answer.HandedOver {
		result.Handoff = &stream.Handoff{From: in.Agent, To: in.HandOverTo, OfTenant: stream.IsTenantRevision(in.HandOverRevision)}
		event, err := result.Handoff.Event()
		if err != nil {
			return answer, err
		}
		events = append(events, event)
	}
	return writeToolEnd(ctx, attempt, end, answer, result, events)
}

// writeToolEnd writes the record of finishCall.
func writeToolEnd(
	ctx context.Context, attempt *stream.Attempt, end toolEnd, answer runs.ToolAnswer, result *stream.Result, events []agui.Event,
) (_ runs.ToolAnswer, err error) {
	if end.onlyAfter != nil {
		answer.Seq, err = attempt.FinishIfUnchanged(ctx, *end.onlyAfter, result, events...)
	} else {
		answer.Seq, err = attempt.Finish(ctx, result, events...)
	}
	return answer, err
}
