package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// The run of an agent on another server (agents.Remote) takes the place of a model call: the same
// activity makes it, on the same lane, with the same attempts. remote_input.go builds its request,
// remote_failure.go decides about its failures.

// callRemote makes the run of a remote agent, and writes the done record. ctx is the context of the activity.
// work is its child for the run, which also ends when the attempt loses its lane. prepareErr is the error of
// prepareTurn.
func (a *Activities) callRemote(ctx, work context.Context, t turn, prepareErr error) (answer runs.ModelAnswer, err error) {
	answer.Outcome = runs.OutcomeSuccess
	var relayed *relay.Relay // nil = nothing was sent
	if err = prepareErr; err == nil {
		answer.Exceeded, err = a.checkDay(work, t.in.Run.Tenant, t.in.Day)
	}
	if err == nil && answer.Exceeded == nil {
		relayed, err = a.relayRun(work, t)
	}
	switch {
	case err != nil && isCancelled(work, err):
		answer.Outcome = runs.OutcomeCancelled
	case err != nil:
		if _, ok := errors.AsType[*relay.RunError](err); ok {
			a.noteRemoteUsage(t, relayed)
		}
		return runs.ModelAnswer{}, a.reportRemoteFailure(ctx, t, a.reportFailure(ctx, t.attempt, err))
	}
	// The run has ended there: the done record is written even if it was cancelled here meanwhile.
	finalCtx, end := contextAfter(work)
	defer end()
	if answer, err = a.finishRemote(finalCtx, t, relayed, answer); err != nil {
		return answer, err
	}
	countOutput(ctx, t.in, answer)
	return answer, a.countAnswer(ctx, t.in, answer)
}

// relayRun makes the request and writes its events to the log. The relay is not nil if the request may
// have been sent. The error is a *remoteError, or that of the log or of ctx.
func (a *Activities) relayRun(ctx context.Context, t turn) (*relay.Relay, error) {
	endpoint := t.definition.Remote
	header, redactor, err := a.remoteHeader(t)
	if err != nil {
		return nil, err
	}
	input, err := a.remoteInput(ctx, t)
	if input.release != nil {
		defer input.release()
	}
	if err != nil {
		return nil, err
	}
	earlier, err := a.earlierProgress(ctx, t)
	if err != nil {
		return nil, err
	}
	relayed := relay.New(t.attempt, t.in.Agent, runOf(t.in.Run), &input.request, input.known)
	if earlier.events != nil {
		if err := relayed.Repeat(ctx, earlier.Progress, earlier.events); err != nil {
			return relayed, err
		}
	}
	ctx, span := telemetry.StartAgent(ctx, t.in.Agent)
	request := input.request
	input.request = agui.RunAgentInput{} // only the client has the bytes of files now, and drops them
	err = a.readRun(ctx, t, span, relayed, input.release, remote.Call{
		URL: endpoint.URL, Header: header, Input: request, Protocol: remote.Protocol(endpoint.Protocol),
		LastEventID: earlier.LastEventID, Redact: redactor.Text, Limits: remote.Limits{Silence: a.Remotes.Silence},
	})
	a.endSpan(span, relayed, err)
	if err == nil {
		err = relayed.AddAnswers(ctx, input.answers)
	}
	return relayed, withShownMessage(err, redactor)
}

// readRun makes a call, and hands its events to the relay. With retry "resume", each event with an ID
// is noted, so that the next attempt can continue after it. readRun calls release at the first event: the
// client has dropped the bytes of files then, and a run may last for hours.
func (a *Activities) readRun(ctx context.Context, t turn, span *telemetry.Chat, relayed *relay.Relay, release func(), call remote.Call) error {
	noted, retry := call.LastEventID, t.definition.Remote.Retry
	if retry != agents.RetryRestart && retry != agents.RetryResume {
		// The note tells the next attempt that the remote may have begun the run.
		if err := errors.Join(t.note(relayed, noted), t.attempt.Flush(ctx)); err != nil {
			return err
		}
	}
	warned := false
	for event, err := range a.Remotes.Client.Run(ctx, call) {
		if err != nil {
			return t.remoteFailure(err)
		}
		release()
		span.Chunk()
		if len(event.Warnings) > 0 && !warned {
			warned = true // one line for each attempt: the others are of the same kind
			deviation := event.Warnings[0]
			logger(ctx).Warn("the remote agent deviates from AG-UI", "remote", t.in.Agent, "event", remote.ShownType(deviation.Type), "deviation", deviation.Detail)
		}
		if err := relayed.Add(ctx, event.Event); err != nil {
			return t.remoteFailure(err)
		}
		// Nothing follows the end of the run: an attempt continues before it.
		_, isEnd := event.Event.(*agui.RunFinished)
		if isEnd || retry != agents.RetryResume || event.ID == "" || event.ID == noted {
			continue
		}
		if err := t.note(relayed, event.ID); err != nil {
			return err
		}
		noted = event.ID
	}
	return nil
}

// note notes that the attempt has sent its request, and its progress after the event with an SSE ID.
func (t turn) note(relayed *relay.Relay, lastEventID string) error {
	progress, err := relayed.Progress(lastEventID)
	if err != nil {
		return err
	}
	return t.attempt.Note(remoteNote{Free: true, Progress: progress})
}

// remoteNote is the note of an attempt at a remote run. An attempt without a note has sent nothing.
type remoteNote struct {
	// Free is that of a callNote, true: nobody knows the usage of a run that has not finished.
	Free bool `json:"free"`
	relay.Progress
}

// noteRemoteUsage notes the usage that the remote has reported with RUN_ERROR, so that it is counted like
// that of a failed model call. The failure of the attempt is written after it.
func (a *Activities) noteRemoteUsage(t turn, relayed *relay.Relay) {
	if reported := runs.Sum(a.remoteUsage(relayed)); len(reported) > 0 {
		_ = t.attempt.Note(callNote{Free: true, Reported: reported, Metered: true}) // such a note can be encoded
	}
}

// remoteUsage returns the usage that the remote has reported, with its cost. A remote may report any
// number of models.
func (a *Activities) remoteUsage(relayed *relay.Relay) (usage []runs.Usage) {
	for _, u := range relayed.Usage() {
		usage = append(usage, a.withCost(u.Provider+"/"+u.Model, plausible(u)))
	}
	return usage
}

// earlierRun is what an earlier attempt has of the run. The zero value begins the run.
type earlierRun struct {
	relay.Progress
	events []agui.Event // that it has emitted
}

// earlierProgress returns where the attempt continues the run. It fails with a *remoteError if an
// earlier attempt may have begun the run, and the run must not be made twice.
func (a *Activities) earlierProgress(ctx context.Context, t turn) (earlier earlierRun, err error) {
	retry := t.definition.Remote.Retry
	// The log does not have the messages of a hidden step.
	if !t.attempt.FollowsUnfinished() || retry == agents.RetryRestart || retry == agents.RetryResume && t.in.IsHidden() {
		return earlier, nil
	}
	place := agentPlace(t.in.Step, t.in.ID)
	attempts, err := a.Log.AttemptOutputs(ctx, place)
	if err != nil {
		return earlier, err
	}
	for i := len(attempts) - 1; i >= 0; i-- {
		attempt := attempts[i]
		switch {
		case attempt.Step != place.Step || attempt.Writer == t.attempt.Writer() || attempt.Note == nil:
			continue // another step, or nothing was sent
		case retry == agents.RetryResume:
			if earlier, err = a.progressOf(ctx, place, attempt); err != nil || earlier.events != nil {
				return earlier, err
			}
		case attempt.Failure == nil || !hasNotBegun(remote.Kind(attempt.Failure.Code)):
			return earlier, t.remoteFailure(&remote.Error{Kind: remote.KindBroken, Sent: true, Message: "the worker ended during the run"})
		}
	}
	return earlier, nil
}

// progressOf returns the progress of an earlier attempt with a note; the zero value if the log does not
// have all events up to it.
func (a *Activities) progressOf(ctx context.Context, place stream.Place, attempt stream.AttemptOutput) (earlier earlierRun, err error) {
	var note remoteNote
	if err := json.Unmarshal(attempt.Note, &note); err != nil {
		return earlier, fmt.Errorf("activities: note of a remote run: %w", err)
	}
	events, err := a.Log.AttemptEvents(ctx, place, attempt.Writer)
	if err != nil || len(events) < note.Emitted {
		return earlier, err
	}
	return earlierRun{note.Progress, events}, nil
}

// finishRemote writes the done record of a remote run. relayed is nil if nothing was sent.
func (a *Activities) finishRemote(ctx context.Context, t turn, relayed *relay.Relay, answer runs.ModelAnswer) (runs.ModelAnswer, error) {
	result := &stream.Result{Scope: scopeOf(t.in.PipelineStep), Visibility: visibilityOf(t.in.Step, t.in.PipelineStep)}
	var events []agui.Event
	var err error
	if relayed != nil {
		events = relayed.ClosingEvents()
		result.Messages, result.ProviderIDs = relayed.Messages(), relayed.ChangedIDs()
		if err = a.describeRun(ctx, t, relayed, &answer); err != nil {
			return answer, err
		}
		result.Remote = &stream.RemoteRun{Thread: remoteThread(t)}
		if answer.Outcome == runs.OutcomeSuccess {
			result.Remote.Interrupts = noteInterrupts(t.definition.Remote, relayed, &answer)
		}
		if err = a.checkRemoteOutput(ctx, t, relayed, &answer, result); err != nil {
			return answer, err
		}
	}
	if result.Answer, err = json.Marshal(answer); err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	answer.Seq, err = t.attempt.Finish(ctx, result, events...)
	return answer, err
}

// checkRemoteOutput checks the result of a remote run, or its last message if it has none. Some remotes
// have a result of another kind, such as Mastra's with an ID of its trace: then the message counts, if it is
// valid. The remote does not know the schema, so the message that sends an invalid answer back has it.
func (a *Activities) checkRemoteOutput(ctx context.Context, t turn, relayed *relay.Relay, answer *runs.ModelAnswer, result *stream.Result) error {
	output, err := a.output(ctx, t.in.Step, t.definition)
	if output == nil || err != nil {
		return err
	}
	required := requiredOutput(t.in, output)
	required.Appendix = outputSection(output)
	isValid := func(text string) bool { _, err := output.Read(text); return err == nil }
	text := string(relayed.Result())
	for _, m := range result.Messages {
		if message := m.Content.Text(); m.ID == answer.MessageID && (text == "" || !isValid(text) && isValid(message)) {
			text = message
		}
	}
	return required.Check(text, answer, result)
}

// describeRun adds to the answer what a run has left: its last message, the calls of the client's
// tools, and the usage that the remote has reported.
func (a *Activities) describeRun(ctx context.Context, t turn, relayed *relay.Relay, answer *runs.ModelAnswer) error {
	answer.MessageID = relayed.AnswerID()
	if answer.Outcome == runs.OutcomeSuccess {
		if messageID, calls := relayed.ClientCalls(); len(calls) > 0 {
			answer.MessageID, answer.InterruptCount = messageID, len(calls)
			if len(calls) > runs.MaxInterrupts { // the run fails
				answer.CallCount, calls = len(calls), calls[:runs.MaxInterrupts]
			}
			gate, err := a.approvalGate(ctx, t.definition, t.in.Step, t.conversation)
			if err != nil {
				return err
			}
			for _, call := range calls {
				answer.Calls = append(answer.Calls, clientCall(call, gate))
			}
		}
	}
	if usage := a.remoteUsage(relayed); len(usage) > 0 {
		answer.Usage, answer.OtherUsage = usage[0], runs.Sum(usage[1:])
	}
	if t.attempt.FollowsUnfinished() {
		earlier, err := a.otherUsage(ctx, agentPlace(t.in.Step, t.in.ID), t.attempt)
		if err != nil {
			return err
		}
		answer.OtherUsage = runs.Sum(answer.OtherUsage, earlier)
	}
	return nil
}

// clientCall returns a call of a client's tool as the workflow knows it. gate decides whether approvers
// decide about it first; nil = about none.
func clientCall(call agui.ToolCall, gate narration.Gate) runs.Call {
	c := runs.Call{ID: call.ID, Client: true}
	if gate == nil {
		return c
	}
	if c.Approval = gate(call.Name, call.Arguments); c.Approval != nil {
		c.Client, c.ForClient = false, true
	}
	return c
}

// endSpan ends the span of a run, with the usage that the remote has reported.
func (a *Activities) endSpan(span *telemetry.Chat, relayed *relay.Relay, err error) {
	response := telemetry.ChatResponse{Error: errorKind(err), Currency: a.currency()}
	if usage := runs.Sum(relayed.Usage()); len(usage) == 1 {
		u := a.withCost(usage[0].Provider+"/"+usage[0].Model, plausible(usage[0]))
		response.Model, response.Input, response.Output, response.Cost = u.Model, u.Input, u.Output, u.Cost
	}
	span.End(response)
}
