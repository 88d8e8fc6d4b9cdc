package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// This file is one model call, from the opening of its step to its done record. The workflow
// schedules it once for each turn. callModel has the frame of the attempt, narrate makes the
// request and reads the stream. usage.go counts what the call costs. The run of an agent on another
// server takes the place of a model call (remote_call.go).

// CallModel is model.call.v1: it streams one completion of the agent's model into the log. The
// answer has the IDs of the message and its tool calls, the approvals that the calls need, and the
// usage, but no content. A cancelled call is an answer with OutcomeCancelled. The provider's errors
// are retried as modelCallError decides.
func (a *Activities) CallModel(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
	return executeStep(ctx, a, in.Step, func(ctx context.Context) (runs.ModelAnswer, error) {
		ctx, release := a.cancellable(ctx, in.Step)
		defer release()
		answer, err := a.callModel(ctx, in)
		if err == nil && len(in.Steered) > 0 {
			finalCtx, end := contextAfter(ctx)
			defer end()
			var received int
			received, err = a.Log.SteeredInto(finalCtx, agentPlace(in.Step, in.ID))
			answer.Missed = len(in.Steered) - received
		}
		return answer, err
	})
}

// callModel opens the step, takes the lane, calls the model and writes the done record. It counts
// the usage for the tenant's day after the done record is written. If the worker dies in between,
// the next attempt finds the done record and counts.
func (a *Activities) callModel(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
	place := agentPlace(in.Step, in.ID)
	attempt, done, err := a.beginModelCall(ctx, place, in)
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	// An earlier attempt has finished, and its worker may have died before it counted the usage.
	// The ledger counts a step once.
	if done != nil {
		answer, err := recordedModelAnswer(ctx, done)
		return answer, errors.Join(err, a.countAnswer(ctx, in, answer))
	}
	defer attempt.Close()
	ctx = afterUnfinished(ctx, in.Step, attempt)
	work, cancel := attempt.Context(ctx)
	defer cancel()
	t, err := a.prepareTurn(work, in, attempt)
	if t.definition != nil && t.definition.Remote != nil {
		return a.callRemote(ctx, work, t, err)
	}
	narrator := narration.New(place.Run, in.ID, attempt)
	narrator.Scope, narrator.Visibility = scopeOf(in.PipelineStep), visibilityOf(in.Step, in.PipelineStep)
	// The metrics of an attempt whose worker died are recorded by its successor.
	if attempt.FollowsUnfinished() {
		if err := a.meterPreviousAttempt(work, place, attempt); err != nil {
			return runs.ModelAnswer{}, err
		}
	}
	summarizes := false
	if err == nil {
		summarizes, err = a.narrate(work, t, narrator)
	}
	switch {
	// A cancel is no failure: the done record below keeps the text and the calls that the model has
	// emitted.
	case err != nil && isCancelled(work, err):
		narrator.Answer.Outcome = runs.OutcomeCancelled
	case err != nil:
		err = t.chain.withFallback(err)
		return runs.ModelAnswer{}, a.reportModelFailure(ctx, attempt, a.reportFailure(ctx, attempt, err))
	}
	// Earlier attempts and summaries were billed as well. The workflow learns of them by this
	// answer only.
	if attempt.FollowsUnfinished() || summarizes {
		if narrator.Answer.OtherUsage, err = a.otherUsage(work, place, attempt); err != nil {
			return runs.ModelAnswer{}, err
		}
	}
	// The model was paid for: the done record is written even if the run was cancelled meanwhile.
	finalCtx, end := contextAfter(work)
	defer end()
	answer, err := narrator.Finish(finalCtx)
	if err != nil {
		return answer, err
	}
	countOutput(ctx, in, answer)
	return answer, a.countAnswer(ctx, in, answer)
}

// beginModelCall begins an attempt (see beginModelStep and doneBefore).
func (a *Activities) beginModelCall(ctx context.Context, place stream.Place, in runs.ModelCall) (*stream.Attempt, *stream.Record, error) {
	attempt, done, err := a.beginModelStep(ctx, place, in)
	if err != nil {
		done, err = a.doneBefore(ctx, place, err)
	}
	return attempt, done, err
}

// beginModelStep begins an attempt, and writes the lifecycle events before the call: of the run if
// this is its first step (Beginning), of the subagent if this is its first step (Announces), else of
// the step. The results are those of stream.Log.Begin.
func (a *Activities) beginModelStep(ctx context.Context, p stream.Place, in runs.ModelCall) (*stream.Attempt, *stream.Record, error) {
	if in.Beginning != (runs.Beginning{}) {
		return a.Snapshots.BeginRun(ctx, p, runOpening(in.Step.Agent, in.Step.Revision, in.Beginning), &agui.StepStarted{StepName: in.Name})
	}
	events, note := stepEvents(in.Step), steeringNote(in.PipelineStep, in.Steered)
	if in.Announces != nil {
		var err error
		if events, err = a.announcement(ctx, p, in.Step, *in.Announces); err != nil {
			return nil, nil, err
		}
		note = nil
	}
	attempt, _, done, err := a.Log.BeginStep(ctx, p, note, events...)
	return attempt, done, err
}

// narrate makes the request and feeds the chunks of the stream to the narrator, which emits events.
// It does not call the model if approvers have to allow more budget first (n.Answer.Exceeded is set,
// without an error). It sets n.Answer.Usage once the request was made, also if it failed. summarizes
// reports whether the agent may have made a summary; the caller then adds the usage of summaries.
func (a *Activities) narrate(ctx context.Context, t turn, narrator *narration.Narrator) (summarizes bool, err error) {
	in, definition := t.in, t.definition
	// The budget is checked before the summary and the call, because both cost money.
	if narrator.Answer.Exceeded, err = a.checkBudget(ctx, in, t.chain.models, in.Day); narrator.Answer.Exceeded != nil || err != nil {
		return false, err
	}
	summarizes = definition.Context.Summarizes()
	prepared, err := a.modelRequest(ctx, in, definition, t.conversation, narrator)
	if err != nil {
		return summarizes, err
	}
	defer prepared.release() // the client of the provider has the request until the end of its stream
	// Everything that fails for lack of a tool, an agent or a price has been done. From here on
	// events are emitted.
	narrator.Predict(definition.State.Predict, t.conversation.State)
	if err := narrator.EmitDropped(ctx, prompt.DroppedFrom(prepared.provider, prepared.request.Model, prepared.model, prepared.entries)); err != nil {
		return summarizes, err
	}
	ignored, err := a.ignoredTools(ctx, definition, in, t.conversation)
	if err == nil {
		err = narrator.EmitIgnoredTools(ctx, ignored)
	}
	if err != nil {
		return summarizes, err
	}
	ctx, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Provider: prepared.provider, Model: prepared.request.Model})
	call := a.newModelCall(t.attempt, definition.Model, chat)
	call.isHidden, call.maxAdmissionWait = in.IsHidden(), t.chain.maxAdmissionWait()
	err = withModelName(definition.Model, call.stream(ctx, prepared.model, prepared.request, func(chunk llm.Chunk) error { return narrator.Add(ctx, chunk) }))
	// The done record of a finished or cancelled call has its usage. Only a failed call writes a
	// last note.
	if err == nil || isCancelled(ctx, err) {
		narrator.Answer.Usage = call.end(err)
	} else {
		narrator.Answer.Usage = call.abandon(ctx, err)
	}
	return summarizes, err
}

// conversation returns the snapshot of the thread with which the model is called: at first, the
// sequence of the attempt's first record.
func (a *Activities) conversation(ctx context.Context, in runs.ModelCall, first uint64) (*snapshot.Snapshot, error) {
	after := in.After
	if in.Child != nil {
		// A child's lane may still be empty. The conversation must contain the record that began
		// the child.
		after = max(after, in.Child.Since)
	}
	if first < after {
		return nil, fmt.Errorf("%w: the attempt begins at %d, before record %d", stream.ErrLogLost, first, after)
	}
	thread := runOf(in.Run).Thread
	conversation, err := a.Snapshots.At(ctx, thread, first)
	if err != nil {
		return nil, err
	}
	// Without a checkpoint later readers fold more records, so a failure is ignored.
	_ = a.Snapshots.Checkpoint(ctx, thread, conversation)
	return conversation, nil
}

// preparedRequest is a request that is ready to be sent.
type preparedRequest struct {
	model    llm.Model
	provider string
	request  *llm.Request
	entries  []snapshot.Entry // of the conversation, which the agent receives
	release  func()           // releases the memory of files; set without an error
}

// modelRequest returns the request of a turn: tools, output and messages. It may call the model for
// a summary of the messages. It configures the narrator with what the model is offered, and with
// the approval rules.
func (a *Activities) modelRequest(
	ctx context.Context, in runs.ModelCall, definition *agents.Definition, conversation *snapshot.Snapshot, narrator *narration.Narrator,
) (r preparedRequest, err error) {
	var offered []tools.Tool
	if r.model, r.request, offered, err = a.newRequest(ctx, definition); err != nil {
		return r, withModelName(definition.Model, err)
	}
	narrator.SetSpecs(offered)
	narrator.State = definition.State
	if r.request.Tools, err = a.offerAgents(ctx, definition, in, narrator, r.request.Tools); err != nil {
		return r, err
	}
	narrator.AllowNames(r.request.Tools)
	// Client tools end the run, so only the run's own agent may call them. A client does not see
	// the calls of a hidden step.
	if in.Child == nil && !in.IsHidden() {
		if narrator.Clients, err = a.clientTools(ctx, definition, conversation, r.request.Tools); err != nil {
			return r, err
		}
	}
	r.request.Tools = append(r.request.Tools, narrator.Clients...)
	output, err := a.output(ctx, in.Step, definition)
	if err != nil {
		return r, err
	}
	narrator.Output = requiredOutput(in, output)
	r.request.Output = outputOf(output)
	if err = a.addMessages(ctx, &r, contextFitter{call: in, definition: definition, output: output, thread: conversation}, r.request.Tools); err != nil {
		return r, err
	}
	// The key is the same for all attempts, so a provider that supports it does not bill a retry. The
	// call of another model is another request, which a provider refuses with the same key.
	r.request.IdempotencyKey = runOf(in.Run).Identify("model", in.ID+"/"+definition.Model)
	r.provider, _ = definition.ModelProvider()
	if narrator.Gate, err = a.approvalGate(ctx, definition, in.Step, conversation); err != nil {
		r.release()
	}
	return r, err
}

// newRequest returns the agent's model, a request without messages and output, and the worker's
// tools that the model is offered. It fails with a *llm.Error that is final if this worker has no
// such provider, and with a lackingError if it lacks a tool.
func (a *Activities) newRequest(ctx context.Context, d *agents.Definition) (llm.Model, *llm.Request, []tools.Tool, error) {
	provider, name := d.ModelProvider()
	model := a.Models[provider]
	if model == nil {
		return nil, nil, nil, &llm.Error{Code: llm.CodeNotFound, Reason: fmt.Sprintf("no worker has the model provider %.64q", provider)}
	}
	offered, err := a.selectTools(ctx, d)
	if err != nil {
		return nil, nil, nil, err
	}
	return model, &llm.Request{Model: name, ReasoningEffort: d.Reasoning.Effort, Tools: specsOf(offered)}, offered, nil
}

// offerAgents adds the subagents and handoffs of an agent to the tools that the model is offered,
// and tells the narrator which calls are theirs. At runs.MaxHandoffs handoffs are still offered,
// because the conversation has calls of them and a provider refuses calls of unknown tools. Their
// calls then get a result that says so. The error catalog.ErrUnknownAgent names all agents that are
// not published.
func (a *Activities) offerAgents(ctx context.Context, d *agents.Definition, in runs.ModelCall, narrator *narration.Narrator, offered []llm.Tool) ([]llm.Tool, error) {
	subagents, err := a.subagents(ctx, d, in.Step)
	handoffs, handoffsErr := a.handoffTargets(ctx, d, in.Step)
	if err := errors.Join(err, handoffsErr); err != nil {
		return nil, err
	}
	offered, narrator.Subagents = narration.OfferSubagents(offered, subagents)
	if offered, handoffs = narration.OfferHandoffs(offered, handoffs); in.Handoffs < runs.MaxHandoffs {
		narrator.Handoffs = handoffs
	}
	return offered, nil
}

// addMessages sets the messages of the request, cut to the agent's context size, and all entries of the
// conversation that the agent receives. It may call a model for a summary.
func (a *Activities) addMessages(ctx context.Context, r *preparedRequest, fitter contextFitter, offered []llm.Tool) error {
	text, err := a.briefing(ctx, fitter.definition, fitter.output, fitter.thread)
	if err != nil {
		return err
	}
	entries, err := a.audience(ctx, fitter.call, fitter.thread)
	if err != nil {
		return err
	}
	fitted, err := a.fitEntries(ctx, fitter, entries, prompt.TextTokens(text)+prompt.ToolTokens(offered))
	if err != nil {
		return err
	}
	if fitted, r.release, err = a.loadFiles(ctx, runOf(fitter.call.Run).Thread, fitted); err != nil {
		return err
	}
	r.request.Messages, r.entries = prompt.Messages(text, fitted), replaceLoaded(entries, fitted)
	return nil
}

// isCancelled reports whether work ended because the run is cancelled: by the announcement, or by
// Temporal. A worker that stops and a fence also end the context, but are not a cancel.
func isCancelled(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return errors.Is(err, stream.ErrCancelled) || errors.Is(cause, stream.ErrCancelled) || temporal.IsCanceledError(cause)
}

// recordedModelAnswer returns the answer in the done record of an earlier attempt. Seq is not part
// of the record, because the record does not know its own sequence.
func recordedModelAnswer(ctx context.Context, done *stream.Record) (runs.ModelAnswer, error) {
	var answer runs.ModelAnswer
	err := decodeAnswer(ctx, done, &answer)
	answer.Seq = done.Seq
	return answer, err
}

// decodeAnswer decodes the answer of a done record into answer, a pointer.
func decodeAnswer(ctx context.Context, done *stream.Record, answer any) error {
	var result stream.Result
	if err := done.Result(ctx, &result); err != nil {
		return err
	}
	if err := json.Unmarshal(result.Answer, answer); err != nil {
		return fmt.Errorf("activities: recorded answer: %w", err)
	}
	return nil
}
