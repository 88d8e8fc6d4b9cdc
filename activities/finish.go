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

// Finish is run.finish.v1: it writes the run's terminal record. First it takes over every lane
// whose step did not finish, so that a worker that comes back is fenced. The first terminal record
// counts, whoever wrote it: Finish returns it.
//
// If the log has lost records of the run, the run ends with log_lost.
func (a *Activities) Finish(ctx context.Context, in runs.Finish) (runs.Finished, error) {
	ctx = inRun(ctx, in.Run, in.Agent, in.Revision)
	finished, err := a.finish(ctx, in)
	if errors.Is(err, stream.ErrLogLost) {
		in.After, in.Outcome, in.Code, in.Message = 0, runs.OutcomeError, runs.ErrorLogLost, "the log lacks what the run had written"
		finished, err = a.finish(ctx, in)
	}
	return finished, fail(ctx, err)
}

func (a *Activities) finish(ctx context.Context, in runs.Finish) (runs.Finished, error) {
	run := runOf(in.Run)
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "finish", Execution: in.Execution, After: in.After}
	if in.HandedOver {
		place.Agent = in.Agent
	}
	if in.After == 0 {
		if err := a.openLost(ctx, place, in); err != nil {
			return runs.Finished{}, err
		}
	}
	used, err := a.takeOver(ctx, place, in.Unfinished)
	if err != nil {
		return runs.Finished{}, err
	}
	// An unfinished model call: its text is kept if the run was cancelled.
	if err := a.Log.Supersede(ctx, place, in.Outcome == runs.OutcomeCancelled); err != nil {
		return runs.Finished{}, err
	}
	more, err := a.unreported(ctx, place)
	if err != nil {
		return runs.Finished{}, err
	}
	if in.Code != runs.ErrorLogLost { // a log without records of the run cannot tell what the workflow knows
		in.Usage = runs.Sum(in.Usage, used, more)
	}
	if len(in.Steered) > 0 {
		if err := a.noteSteering(ctx, place, in.Steered); err != nil {
			return runs.Finished{}, err
		}
	}
	end, err := a.terminalEvent(ctx, in)
	if err != nil {
		return runs.Finished{}, err
	}
	before, err := a.legacyInterrupts(ctx, in, end)
	if err != nil {
		return runs.Finished{}, err
	}
	otherwise, err := a.toldOtherwise(ctx, in)
	if err != nil {
		return runs.Finished{}, err
	}
	seq, earlier, err := a.Log.Seal(ctx, place, slices.Concat(otherwise, before, []agui.Event{end})...)
	if err != nil {
		return runs.Finished{}, err
	}
	if earlier != nil {
		return finishedBefore(ctx, earlier)
	}
	a.checkpoint(ctx, run.Thread, seq)
	telemetry.RunFinished(ctx, in.Agent, string(in.Outcome), in.Code)
	return runs.Finished{Outcome: in.Outcome, Code: in.Code, Seq: seq}, nil
}

// takeOver takes over the lanes of unfinished calls and of their subagents. It returns the usage of
// those subagents, which nothing else reports.
func (a *Activities) takeOver(ctx context.Context, speaking stream.Place, lanes []runs.Lane) (used []runs.Usage, err error) {
	for _, lane := range lanes {
		p := speaking
		p.Lane, p.After = speaking.Lane.Tool(lane.Index), lane.After
		if lane.After == 0 {
			p.Since = max(p.Since, speaking.After)
		}
		if !lane.Branch {
			if err := a.Log.Supersede(ctx, p, false); err != nil {
				return nil, err
			}
		}
		if !lane.Subagent {
			continue
		}
		p.Lane, p.After, p.Since, p.Subagent = speaking.Lane.Subagent(lane.Index), 0, lane.After, ""
		if err := a.Log.SupersedeSubagents(ctx, p, false); err != nil {
			return nil, err
		}
		if p.Since = lane.After; lane.After == 0 {
			p.Since = max(speaking.Since, speaking.After)
		}
		below, err := a.Log.SpeakingLanes(ctx, p.Run, p.Lane)
		if err != nil {
			return nil, err
		}
		for _, lane := range below {
			p.Lane = lane
			more, err := a.unreported(ctx, p)
			if err != nil {
				return nil, err
			}
			used = runs.Sum(used, more)
		}
	}
	return used, nil
}

// openLost opens a run whose first step failed before it could: the first event of a run is
// RUN_STARTED. A run that is open is left as it is, if this execution opened it.
func (a *Activities) openLost(ctx context.Context, p stream.Place, in runs.Finish) error {
	begun, err := a.Log.Begun(ctx, p.Run)
	switch {
	case err != nil:
		return err
	case begun != nil && begun.Execution != in.Execution:
		return stream.ErrOver
	case begun != nil:
		return nil
	}
	told, err := a.toldLate(ctx, p.Run.Thread, in)
	if err != nil {
		return err
	}
	p.Step = in.First // a late attempt of the first step finds the run open, and is then stopped by the terminal record
	_, err = a.Snapshots.OpenRun(ctx, p, opening(in.Agent, in.Revision, in.Beginning), true, told...)
	return err
}

// toldLate returns the events of a run whose input has late answers only.
func (a *Activities) toldLate(ctx context.Context, t stream.Thread, in runs.Finish) ([]agui.Event, error) {
	if in.Outcome != runs.OutcomeSuccess || in.Input == 0 {
		return nil, nil
	}
	input, err := a.Log.Input(ctx, in.Input)
	if err != nil || len(input.Late) == 0 {
		return nil, err
	}
	thread, err := a.Snapshots.Latest(ctx, t, in.Input)
	if err != nil {
		return nil, err
	}
	return a.Snapshots.LateEvents(ctx, input.Late, thread)
}

// toldOtherwise returns the events of a run whose answers lost against concurrent decisions.
func (a *Activities) toldOtherwise(ctx context.Context, in runs.Finish) ([]agui.Event, error) {
	if !in.Answers {
		return nil, nil
	}
	input, err := a.Log.Input(ctx, in.Input)
	if err != nil || len(input.Answers) == 0 {
		return nil, err
	}
	thread, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, in.After)
	if err != nil {
		return nil, err
	}
	return a.Snapshots.LateEvents(ctx, input.Answers, thread)
}

// noteSteering adds the steered messages of a run that ends before a model is told them: the next
// run is.
func (a *Activities) noteSteering(ctx context.Context, p stream.Place, steered []uint64) error {
	p.Step = "finish/steered"
	_, err := a.Log.Open(ctx, p, stream.Steering{Inputs: steered})
	return err
}

// checkpoint is an optimization: its failure does not matter.
func (a *Activities) checkpoint(ctx context.Context, t stream.Thread, seq uint64) {
	if r, err := a.Snapshots.At(ctx, t, seq); err == nil {
		_ = a.Snapshots.Checkpoint(ctx, t, r, true)
	}
}

func (a *Activities) terminalEvent(ctx context.Context, in runs.Finish) (agui.Event, error) {
	usage := tokenUsage(in.Usage)
	metadata, err := a.usageMetadata(in.Usage)
	if err != nil {
		return nil, err
	}
	told := agui.BaseEvent{Metadata: metadata}
	end := &agui.RunFinished{BaseEvent: told, ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID), Usage: usage}
	switch in.Outcome {
	case runs.OutcomeError:
		detail, err := a.detail(ctx, runOf(in.Run).Thread, in.Detail)
		if err != nil {
			return nil, err
		}
		message := pipeline.Failure{Message: in.Message, Detail: detail}.Text()
		return &agui.RunError{BaseEvent: told, Code: in.Code, Message: message, Usage: usage}, nil
	case runs.OutcomeCancelled:
		end.Outcome = &agui.Outcome{Type: agui.OutcomeCancelled}
	case runs.OutcomeInterrupt:
		asked, err := a.interrupts(ctx, runOf(in.Run), in.Interrupts)
		if err != nil {
			return nil, err
		}
		end.Outcome = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: asked}
	default:
		end.Outcome = &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: pendingCalls(in.Interrupts)}
	}
	return end, nil
}

// detail reads the detail of a failure; "" = none, or the log has lost it.
func (a *Activities) detail(ctx context.Context, t stream.Thread, record uint64) (string, error) {
	if record == 0 {
		return "", nil
	}
	return a.Log.Detail(ctx, t, record)
}

func pendingCalls(w *runs.Interrupts) []string {
	if w == nil {
		return nil
	}
	var ids []string
	for _, c := range w.Calls {
		if c.Decision == nil {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// finishedBefore reads how a run ended before, and when its interrupts were announced.
func finishedBefore(ctx context.Context, rec *stream.Record) (runs.Finished, error) {
	end, err := rec.Ending(ctx)
	finished := runs.Finished{Outcome: runs.Outcome(end.Outcome), Code: end.Code, Seq: rec.Seq}
	if err != nil {
		return finished, err
	}
	for _, q := range end.Interrupts {
		by, err := stream.ApprovalSourceOf(q)
		if err != nil {
			return finished, err
		}
		if by != nil && by.AskedAt.After(finished.AskedAt) { // interrupts of children were announced before the end
			finished.AskedAt = by.AskedAt
		}
		if q.ExpiresAt == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, q.ExpiresAt)
		if err != nil {
			return finished, fmt.Errorf("activities: question %s: %w", q.ID, err)
		}
		if finished.Expires == nil {
			finished.Expires = map[string]time.Time{}
		}
		finished.Expires[q.ToolCallID] = at
	}
	return finished, nil
}

func tokenUsage(usage []runs.Usage) []agui.TokenUsage {
	var out []agui.TokenUsage
	for _, u := range usage {
		if u.Provider == "" && u.Model == "" && u.Input == nil && u.Output == nil && u.Total == nil {
			continue // calls without a report of their provider
		}
		out = append(out, agui.TokenUsage{
			Provider: u.Provider, Model: u.Model, InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total,
			ReasoningTokens: u.Reasoning, CachedInputTokens: u.CachedInput, CacheWriteInputTokens: u.CacheWrite,
		})
	}
	return out
}
