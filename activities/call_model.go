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

// CallModel is model.call.v1: it streams one completion of the agent's model into the log.
func (a *Activities) CallModel(ctx context.Context, in runs.ModelCall) (answer runs.ModelAnswer, err error) {
	ctx = inStep(ctx, in.Step)
	defer contain(ctx, &err)
	work, leave, err := a.enter(ctx, in.Step)
	if err != nil {
		return answer, fail(ctx, err)
	}
	defer leave()
	answer, err = a.callModel(work, in)
	return answer, fail(ctx, err)
}

func (a *Activities) callModel(ctx context.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
	place := agentPlace(in.Step, in.ID)
	var err error
	if place.After, err = a.openModelStep(ctx, place, in); err != nil {
		return runs.ModelAnswer{}, err
	}
	attempt, done, err := a.Log.Begin(ctx, place)
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	if done != nil {
		answer, err := recordedModelAnswer(ctx, done)
		return answer, errors.Join(err, a.countAnswer(ctx, in, answer))
	}
	defer attempt.Close()
	work, cancel := attempt.Context(ctx)
	defer cancel()
	n := narration.New(place.Run, in.ID, attempt)
	n.Scope = scopeOf(in.Place)
	if attempt.Resumed() {
		if err := a.meterBefore(work, place, attempt); err != nil {
			return runs.ModelAnswer{}, err
		}
	}
	summarizes, err := a.narrate(work, in, n, attempt)
	switch {
	case err != nil && cancelled(work, err):
		n.Answer.Outcome = runs.OutcomeCancelled
	case err != nil:
		return runs.ModelAnswer{}, a.failedCall(ctx, in, attempt, a.tellLacking(ctx, in.Step, attempt, err))
	}
	if attempt.Resumed() || summarizes {
		if n.Answer.OtherUsage, err = a.usedBefore(work, place, attempt); err != nil {
			return runs.ModelAnswer{}, err
		}
	}
	last, end := contextAfter(work)
	defer end()
	answer, err := n.Finish(last)
	if err != nil {
		return answer, err
	}
	return answer, a.countAnswer(ctx, in, answer)
}

func (a *Activities) openModelStep(ctx context.Context, p stream.Place, in runs.ModelCall) (uint64, error) {
	if in.Announces != nil {
		return a.announce(ctx, p, in.Step, *in.Announces)
	}
	if in.Beginning == (runs.Beginning{}) {
		return a.openStep(ctx, p, in.Step, in.Steered)
	}
	return a.Snapshots.OpenRun(ctx, p, opening(in.Step.Agent, in.Step.Revision, in.Beginning), false, &agui.StepStarted{StepName: in.Name})
}

// narrate calls the model, unless a limit has to be approved first. It is cancelled before the call
// if a cancel was requested before the run began. summarizes tells that the step may have had a
// summary made.
func (a *Activities) narrate(ctx context.Context, in runs.ModelCall, n *narration.Narrator, attempt *stream.Attempt) (summarizes bool, err error) {
	run := runOf(in.Run)
	wanted, err := a.cancelRequested(ctx, in.Step)
	if err != nil {
		return summarizes, err
	}
	if wanted {
		return false, stream.ErrCancelled
	}
	definition, err := a.definition(ctx, in.Step)
	if err != nil {
		return summarizes, err
	}
	after := in.After
	if in.Child != nil {
		after = max(after, in.Child.Since)
	}
	conversation, err := a.Snapshots.Latest(ctx, run.Thread, after)
	if err != nil {
		return summarizes, err
	}
	_ = a.Snapshots.Checkpoint(ctx, run.Thread, conversation, false) // an optimization: its failure does not matter
	if n.Answer.Exceeded, err = a.mayPay(ctx, in, definition.Model, in.Day); n.Answer.Exceeded != nil || err != nil {
		return summarizes, err
	}
	model, req, offered, err := a.request(ctx, definition)
	if err != nil {
		return false, ofModel(definition.Model, err)
	}
	n.Place(offered)
	if req.Tools, err = a.offerAgents(ctx, definition, in, n, req.Tools); err != nil {
		return summarizes, err
	}
	n.Offer(req.Tools)
	if in.Child == nil {
		if n.Clients, err = a.clientTools(ctx, definition, conversation, req.Tools); err != nil {
			return summarizes, err
		}
	}
	req.Tools = append(req.Tools, n.Clients...)
	output, err := a.output(ctx, in.Step)
	if err != nil {
		return summarizes, err
	}
	req.Output = outputOf(output)
	summarizes = definition.Context.Summarizes()
	var heard []snapshot.Entry
	if req.Messages, heard, err = a.messages(ctx, fitting{call: in, definition: definition, output: output, thread: conversation}, req.Tools); err != nil {
		return summarizes, err
	}
	if n.Gate, err = a.gate(ctx, definition, conversation); err != nil {
		return summarizes, err
	}
	n.Predict(definition.State.Predict)
	req.IdempotencyKey = run.Identify("model", in.ID)
	provider, _ := definition.ModelProvider()
	if err := n.TellDropped(ctx, prompt.DroppedFrom(provider, req.Model, model, heard)); err != nil {
		return summarizes, err
	}
	ctx, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Provider: provider, Model: req.Model})
	c := a.newModelCall(attempt, definition.Model, chat)
	err = ofModel(definition.Model, c.stream(ctx, model, req, func(chunk llm.Chunk) error { return n.Tell(ctx, chunk) }))
	n.Answer.Usage = c.end(ctx, err, err == nil || cancelled(ctx, err))
	return summarizes, err
}

// request returns the request without messages, and the tools that the model is offered.
func (a *Activities) request(ctx context.Context, d *agents.Definition) (llm.Model, *llm.Request, []tools.Tool, error) {
	provider, name := d.ModelProvider()
	model := a.Models[provider]
	if model == nil {
		return nil, nil, nil, &llm.Error{Code: llm.CodeNotFound, Reason: fmt.Sprintf("no worker has a model provider %.64q", provider)}
	}
	offered, err := a.offer(ctx, d)
	if err != nil {
		return nil, nil, nil, err
	}
	return model, &llm.Request{Model: name, ReasoningEffort: d.Reasoning.Effort, Tools: specsOf(offered)}, offered, nil
}

// offerAgents adds subagents and handoffs to the tools. At the limit of handoffs they are still
// offered, because the conversation has calls of them, but are not carried out.
func (a *Activities) offerAgents(ctx context.Context, d *agents.Definition, in runs.ModelCall, n *narration.Narrator, offered []llm.Tool) ([]llm.Tool, error) {
	delegates, err := a.delegates(ctx, d, in.Child)
	if err != nil {
		return nil, err
	}
	takers, err := a.takers(ctx, d, in.Step)
	if err != nil {
		return nil, err
	}
	offered, n.Delegates = narration.OfferDelegates(offered, delegates)
	if offered, takers = narration.OfferHandoffs(offered, takers); in.Handoffs < runs.MaxHandoffs {
		n.Handoffs = takers
	}
	return offered, nil
}

// messages returns those of the request, as far as they fit, and the whole conversation of the
// agent.
func (a *Activities) messages(ctx context.Context, f fitting, offered []llm.Tool) ([]llm.Message, []snapshot.Entry, error) {
	told, err := a.briefing(ctx, f.definition, f.output, f.thread)
	if err != nil {
		return nil, nil, err
	}
	entries, err := a.audience(ctx, f.call, f.thread)
	if err != nil {
		return nil, nil, err
	}
	room, err := a.fitEntries(ctx, f, entries, prompt.TextTokens(told)+prompt.ToolTokens(offered))
	return prompt.Messages(told, room), entries, err
}

// cancelled reports whether work ended because the run is cancelled, by the announcement or by
// Temporal. A stopping worker and a fence are no cancel.
func cancelled(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return errors.Is(err, stream.ErrCancelled) || errors.Is(cause, stream.ErrCancelled) || temporal.IsCanceledError(cause)
}

// recordedModelAnswer returns the answer of an attempt that had finished before.
func recordedModelAnswer(ctx context.Context, done *stream.Record) (runs.ModelAnswer, error) {
	var answer runs.ModelAnswer
	err := recorded(ctx, done, &answer)
	answer.Seq = done.Seq
	return answer, err
}

// recorded decodes the answer of a finished attempt.
func recorded(ctx context.Context, done *stream.Record, answer any) error {
	var result stream.Result
	if err := done.Result(ctx, &result); err != nil {
		return err
	}
	if err := json.Unmarshal(result.Answer, answer); err != nil {
		return fmt.Errorf("activities: recorded answer: %w", err)
	}
	return nil
}
