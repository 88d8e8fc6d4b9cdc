package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file ends runs. The thread's workflow schedules Finish as the last activity of each run:
// first as a local activity, and if that fails (except with runs.ErrorFenced or runs.ErrorLogLost)
// as an activity with unlimited attempts, because a run must end.

// Finish is run.finish.v1: it writes the terminal record of a run. First it takes over every lane
// whose step did not finish, so that late attempts are fenced, and counts the model calls of those
// steps. If the run has a terminal record already, Finish writes nothing and returns how that
// record ended the run: the first one counts.
//
// If the log has lost records of the run, Finish ends the run with the code log_lost instead. The
// error is activityError's; a failure never counts as the last one (see countFailure).
func (a *Activities) Finish(ctx context.Context, in runs.FinishInput) (finished runs.FinishResult, err error) {
	ctx = inRun(ctx, in.Run, in.Agent, in.Revision)
	defer recoverPanic(ctx, &err)
	finished, err = a.finish(ctx, in)
	if errors.Is(err, stream.ErrLogLost) {
		// After = 0 lets the second try accept a log without the records that the workflow knows.
		in.After, in.Outcome, in.Code, in.Message = 0, runs.OutcomeError, runs.ErrorLogLost, "the log lacks records of the run"
		finished, err = a.finish(ctx, in)
	}
	return finished, activityError(ctx, err)
}

// finish takes over lanes, counts usage, and seals the run. Each stage may be repeated: a later
// attempt finds the lanes taken over, counts the same usage, and returns the terminal record.
func (a *Activities) finish(ctx context.Context, in runs.FinishInput) (runs.FinishResult, error) {
	run := runOf(in.Run)
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "finish", Execution: in.Execution, After: in.After}
	// The index of threads lists the agent that has the thread at the end.
	if in.HandedOver {
		place.Agent = in.Agent
	}
	// No step of the run has reported a record, so the run may not be open.
	if in.After == 0 {
		if err := a.openUnopenedRun(ctx, place, in); err != nil {
			return runs.FinishResult{}, err
		}
	}
	usage, err := a.supersedeLanes(ctx, place, in.Unfinished)
	if err != nil {
		return runs.FinishResult{}, err
	}
	unreportedUsage, err := a.endUnfinishedStep(ctx, place, in.Outcome)
	if err != nil {
		return runs.FinishResult{}, err
	}
	// A log without records of the run cannot add to what the workflow knows.
	if in.Code != runs.ErrorLogLost {
		in.Usage = runs.Sum(in.Usage, usage, unreportedUsage)
	}
	if len(in.Steered) > 0 {
		if err := a.recordSteering(ctx, place, in.Steered); err != nil {
			return runs.FinishResult{}, err
		}
	}
	terminal, err := a.terminalEvent(ctx, in)
	if err != nil {
		return runs.FinishResult{}, err
	}
	legacyEvents, err := a.legacyInterrupts(ctx, in, terminal)
	if err != nil {
		return runs.FinishResult{}, err
	}
	// Clients whose answers lost learn it before the last event.
	lostAnswers, err := a.lostAnswerEvents(ctx, in)
	if err != nil {
		return runs.FinishResult{}, err
	}
	seq, existing, err := a.Log.Seal(ctx, place, slices.Concat(lostAnswers, legacyEvents, []agui.Event{terminal})...)
	if err != nil {
		return runs.FinishResult{}, err
	}
	// Another attempt, or the API for a dead workflow, has ended the run. Its usage and outcome
	// stand.
	if existing != nil {
		finished, err := recordedFinish(ctx, existing)
		if err == nil {
			// The attempt may have ended before it counted the run.
			a.countRun(ctx, in, finished.Outcome)
		}
		return finished, err
	}
	a.checkpoint(ctx, run.Thread, seq)
	telemetry.RunFinished(ctx, in.Agent, string(in.Outcome), in.Code)
	a.countRun(ctx, in, in.Outcome)
	return runs.FinishResult{Outcome: in.Outcome, Code: in.Code, Seq: seq}, nil
}

// supersedeLanes supersedes the lanes of calls that did not finish, with those of their subagents
// and branches. agent is the place of the agent that made the calls. It returns the usage of these
// subagents and branches, which no answer has reported. A branch has no tool lane of its own to
// take over.
func (a *Activities) supersedeLanes(ctx context.Context, agent stream.Place, lanes []runs.Lane) (usage []runs.Usage, err error) {
	for _, lane := range lanes {
		p := agent
		p.Lane, p.After = agent.Lane.Tool(lane.Index), lane.After
		// Without a known record, this use of the lane began after the agent's last record.
		if lane.After == 0 {
			p.Since = max(p.Since, agent.After)
		}
		if !lane.Branch {
			if err := a.Log.Supersede(ctx, p); err != nil {
				return nil, err
			}
		}
		if !lane.Subagent {
			continue
		}
		p.Lane, p.After, p.Since, p.Subagent = agent.Lane.Subagent(lane.Index), 0, lane.After, ""
		if err := a.Log.SupersedeSubagents(ctx, p); err != nil {
			return nil, err
		}
		if p.Since = lane.After; lane.After == 0 {
			p.Since = max(agent.Since, agent.After)
		}
		// Subagents have subagents: the lanes of all of them begin with the lane of the outermost
		// one.
		agentLanes, err := a.Log.AgentLanes(ctx, p.Run, p.Lane)
		if err != nil {
			return nil, err
		}
		for _, lane := range agentLanes {
			p.Lane = lane
			unreportedUsage, err := a.unreported(ctx, p)
			if err != nil {
				return nil, err
			}
			usage = runs.Sum(usage, unreportedUsage)
		}
	}
	return usage, nil
}

// openUnopenedRun opens a run whose first step failed before it could, because the first event of a
// run is RUN_STARTED. It does nothing if this execution has opened the run. The error is
// stream.ErrOver if another execution has: it owns the run.
func (a *Activities) openUnopenedRun(ctx context.Context, p stream.Place, in runs.FinishInput) error {
	opening, err := a.Log.OpeningOf(ctx, p.Run)
	switch {
	case err != nil:
		return err
	case opening != nil && opening.Execution != in.Execution:
		return stream.ErrOver
	case opening != nil:
		return nil
	}
	lateEvents, err := a.lateDecisionEvents(ctx, p.Run.Thread, in)
	if err != nil {
		return err
	}
	// With the ID of the first step, a late attempt of that step finds the run open. The terminal
	// record then stops it.
	p.Step = in.First
	_, err = a.Snapshots.OpenFailedRun(ctx, p, runOpening(in.Agent, in.Revision, in.Beginning), lateEvents...)
	return err
}

// lateDecisionEvents returns the events of a run whose input has only answers to interrupts that
// were decided before: they tell the client which decisions stand. It returns nil for other runs.
func (a *Activities) lateDecisionEvents(ctx context.Context, t stream.Thread, in runs.FinishInput) ([]agui.Event, error) {
	if in.Outcome != runs.OutcomeSuccess || in.Input == 0 {
		return nil, nil
	}
	input, err := a.Log.Input(ctx, in.Input)
	if err != nil || len(input.LateDecisions) == 0 {
		return nil, err
	}
	snap, err := a.Snapshots.Latest(ctx, t, in.Input)
	if err != nil {
		return nil, err
	}
	return a.Snapshots.LateEvents(ctx, input.LateDecisions, snap)
}

// lostAnswerEvents returns the events for answers of the run's input that lost against concurrent
// decisions: they tell the client which decisions stand.
func (a *Activities) lostAnswerEvents(ctx context.Context, in runs.FinishInput) ([]agui.Event, error) {
	if !in.Answers {
		return nil, nil
	}
	input, err := a.Log.Input(ctx, in.Input)
	if err != nil || len(input.ResumeDecisions) == 0 {
		return nil, err
	}
	snap, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, in.After)
	if err != nil {
		return nil, err
	}
	return a.Snapshots.LateEvents(ctx, input.ResumeDecisions, snap)
}

// recordSteering adds the steered messages to the conversation that no model call of this run has
// received. The next run's model calls receive them.
func (a *Activities) recordSteering(ctx context.Context, p stream.Place, steered []uint64) error {
	p.Step = "finish/steered"
	_, err := a.Log.OpenStep(ctx, p, stream.Steering{Inputs: steered})
	return err
}

// checkpoint stores a snapshot of the thread at the end of a run. Errors are ignored: without a
// checkpoint, readers fold more records.
func (a *Activities) checkpoint(ctx context.Context, t stream.Thread, seq uint64) {
	if snap, err := a.Snapshots.At(ctx, t, seq); err == nil {
		_ = a.Snapshots.FinalCheckpoint(ctx, t, snap)
	}
}

// terminalEvent returns RUN_FINISHED, or RUN_ERROR for OutcomeError, with the usage, the interrupts
// and the result of the run. A run that waits only for client tool calls finishes with success and the
// IDs of those calls.
func (a *Activities) terminalEvent(ctx context.Context, in runs.FinishInput) (agui.Event, error) {
	usage := tokenUsage(in.Usage)
	metadata, err := a.usageMetadata(in.Usage)
	if err != nil {
		return nil, err
	}
	base := agui.BaseEvent{Metadata: metadata}
	end := &agui.RunFinished{BaseEvent: base, ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID), Usage: usage}
	switch in.Outcome {
	case runs.OutcomeError:
		detail, err := a.detail(ctx, runOf(in.Run).Thread, in.Detail)
		if err != nil {
			return nil, err
		}
		message := pipeline.Failure{Message: in.Message, Detail: detail}.Text()
		return &agui.RunError{BaseEvent: base, Code: in.Code, Message: message, Usage: usage}, nil
	case runs.OutcomeCancelled:
		end.Outcome = &agui.Outcome{Type: agui.OutcomeCancelled}
	case runs.OutcomeInterrupt:
		interrupts, err := a.openInterrupts(ctx, runOf(in.Run), in.Interrupts)
		if err != nil {
			return nil, err
		}
		end.Outcome = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: interrupts}
	default:
		end.Outcome = &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: pendingCalls(in.Interrupts)}
		result, err := a.keptResult(ctx, runOf(in.Run).Thread, in.Result)
		if err != nil {
			return nil, err
		}
		stream.SetResult(end, result)
	}
	return end, nil
}

// detail reads the detail of a failure from the record that has it; "" = there is none, or the log
// has lost it. A detail may have content, so it goes from the log to the log only.
func (a *Activities) detail(ctx context.Context, t stream.Thread, record uint64) (string, error) {
	if record == 0 {
		return "", nil
	}
	return a.Log.Detail(ctx, t, record)
}

// pendingCalls returns the IDs of the client tool calls without a result. s may be nil.
func pendingCalls(s *runs.Interrupts) []string {
	if s == nil {
		return nil
	}
	var ids []string
	for _, c := range s.Items {
		if c.Decision == nil {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// announcementTime returns when an interrupt was announced: an approval, or the question of a tool.
// It is zero for calls of the client's tools, which have no deadline.
func announcementTime(interrupt agui.Interrupt) (time.Time, error) {
	approval, err := stream.ApprovalSourceOf(interrupt)
	if err != nil {
		return time.Time{}, err
	}
	if approval != nil {
		return approval.OpenedAt, nil
	}
	question, err := stream.QuestionSourceOf(interrupt)
	return question.OpenedAt, err
}

// recordedFinish returns how an existing terminal record ended the run, and when its interrupts
// were announced and expire. The workflow takes these times over: it does not remember the attempt
// that wrote the record.
func recordedFinish(ctx context.Context, rec *stream.Record) (runs.FinishResult, error) {
	end, err := rec.RunEnding(ctx)
	finished := runs.FinishResult{Outcome: runs.Outcome(end.Outcome), Code: end.Code, Seq: rec.Seq}
	if err != nil {
		return finished, err
	}
	for _, interrupt := range end.Interrupts {
		announced, err := announcementTime(interrupt)
		if err != nil {
			return finished, err
		}
		// Interrupts of children may have been announced before the run ended. The latest time is
		// the run's.
		if announced.After(finished.OpenedAt) {
			finished.OpenedAt = announced
		}
		if interrupt.ExpiresAt == "" {
			continue
		}
		expires, err := time.Parse(time.RFC3339, interrupt.ExpiresAt)
		if err != nil {
			return finished, fmt.Errorf("activities: interrupt %s: %w", interrupt.ID, err)
		}
		if finished.Expires == nil {
			finished.Expires = map[string]time.Time{}
		}
		finished.Expires[stream.CallOf(interrupt)] = expires
	}
	return finished, nil
}

// tokenUsage returns usage as AG-UI has it, without entries of which no provider has reported
// anything.
func tokenUsage(usage []runs.Usage) []agui.TokenUsage {
	var out []agui.TokenUsage
	for _, u := range usage {
		// No provider has reported anything of these calls.
		if u.Provider == "" && u.Model == "" && u.Input == nil && u.Output == nil && u.Total == nil {
			continue
		}
		out = append(out, agui.TokenUsage{
			Provider: u.Provider, Model: u.Model, InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total,
			ReasoningTokens: u.Reasoning, CachedInputTokens: u.CachedInput, CacheWriteInputTokens: u.CacheWrite,
		})
	}
	return out
}

// endUnfinishedStep supersedes an unfinished model call of a run that has ended, and returns the
// usage that no answer has reported. The messages of the call stay if the run was cancelled.
func (a *Activities) endUnfinishedStep(ctx context.Context, p stream.Place, outcome runs.Outcome) ([]runs.Usage, error) {
	unfinished, err := a.Log.HasLater(ctx, p)
	if err != nil || !unfinished {
		return nil, err
	}
	if outcome == runs.OutcomeCancelled {
		err = a.Log.SupersedeKeepingMessages(ctx, p)
	} else {
		err = a.Log.Supersede(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return a.unreported(ctx, p)
}
