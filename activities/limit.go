package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file asks approvers whether a run may exceed a soft limit. The workflow notices the limit
// and schedules InterruptForLimit; the interrupt is an approval of a call to the reserved tool
// pipeline.ApproveTool, so decisions about it work like those about tool calls.

// InterruptForLimit is limit.interrupt.v1: it writes the interrupt about an exceeded soft limit, as
// the only call of a message, and returns the call as a ModelAnswer. It calls no model. A later
// attempt finds the done record and returns its answer, or nothing was written.
func (a *Activities) InterruptForLimit(ctx context.Context, in runs.LimitInterrupt) (runs.ModelAnswer, error) {
	return withAttempt(inStep(ctx, in.Step), a, func(ctx context.Context) (runs.ModelAnswer, error) { return a.writeLimitInterrupt(ctx, in) })
}

// writeLimitInterrupt opens the step, takes the lane and writes the message. The limit may be
// exceeded before the run's first model call, so this step may open the run.
func (a *Activities) writeLimitInterrupt(ctx context.Context, in runs.LimitInterrupt) (answer runs.ModelAnswer, err error) {
	place := agentPlace(in.Step, in.ID)
	if in.Beginning == (runs.Beginning{}) {
		place.After, err = a.openStep(ctx, place, in.Step, nil)
	} else {
		place.After, err = a.Snapshots.OpenRun(ctx, place, runOpening(in.Agent, in.Revision, in.Beginning), &agui.StepStarted{StepName: in.Name})
	}
	if err != nil {
		return answer, err
	}
	attempt, done, err := a.Log.Begin(ctx, place)
	if err != nil {
		return answer, err
	}
	if done != nil {
		return recordedModelAnswer(ctx, done)
	}
	defer attempt.Close()
	rules, err := a.definition(ctx, in.Step)
	if err != nil {
		return answer, err
	}
	args, err := json.Marshal(a.limitArguments(in.Exceeded))
	if err != nil {
		return answer, fmt.Errorf("activities: encode the arguments of a limit: %w", err)
	}
	return a.writeLimitCall(ctx, in, attempt, rules, string(args))
}

// writeLimitCall writes the message with the call. The step's rule gates the call, so the answer
// has the approval. args are the arguments of the call, as JSON.
func (a *Activities) writeLimitCall(ctx context.Context, in runs.LimitInterrupt, attempt *stream.Attempt, rules *agents.Definition, args string) (runs.ModelAnswer, error) {
	narrator := narration.New(runOf(in.Run), in.ID, attempt)
	narrator.Scope = scopeOf(in.PipelineStep)
	narrator.OfferOnly(pipeline.ApproveTool)
	narrator.Gate = func(_, arguments string) *runs.Approval { return newApproval(rules, 0, arguments) }
	_, events, result, err := narrator.Propose(pipeline.ApproveTool, args)
	if err != nil {
		return narrator.Answer, err
	}
	narrator.Answer.Seq, err = attempt.Finish(ctx, result, events...)
	return narrator.Answer, err
}

// limitArguments returns the arguments of a limit's interrupt: the amounts in the units that
// approvers see, with the currency of a cost.
func (a *Activities) limitArguments(exceeded runs.ExceededLimit) pipeline.LimitArguments {
	limit := exceeded.Limit
	// exceeded.Limit is set for limits of the tenant's day only; the others are known by their
	// code.
	switch exceeded.Code {
	case runs.CodeLimitTokens:
		limit = pipeline.LimitTokens
	case runs.CodeLimitCost:
		limit = pipeline.LimitCost
	case runs.CodeLimitTurns:
		limit = pipeline.LimitTurns
	case runs.CodeLimitDuration:
		limit = pipeline.LimitDuration
	}
	args := pipeline.NewLimitArguments(limit, exceeded.Used, exceeded.Allowed)
	args.Date = exceeded.Date
	if limit == pipeline.LimitCost || limit == pipeline.LimitCostPerDay {
		args.Currency = a.currency()
	}
	return args
}

// limitMessage returns the question for approvers.
func (a *Activities) limitMessage(exceeded runs.ExceededLimit) string {
	args := a.limitArguments(exceeded)
	used, allowed := pipeline.AmountText(args.Used), pipeline.AmountText(args.Allowed)
	// These are the values for a limit of tokens.
	verb, unit := "used", " tokens"
	money := strings.TrimRight(" "+args.Currency, " ")
	switch args.Limit {
	case pipeline.LimitTokensPerDay:
		return fmt.Sprintf("The tenant has used %s tokens on %s, UTC. May the run continue up to %s tokens?", used, args.Date, allowed)
	case pipeline.LimitCostPerDay:
		return fmt.Sprintf("The tenant has spent %s%s on %s, UTC. May the run continue up to %s%s?", used, money, args.Date, allowed, money)
	case pipeline.LimitCost:
		verb, unit = "cost", money
	case pipeline.LimitTurns:
		verb, unit = "taken", " turns"
	case pipeline.LimitDuration:
		verb, unit = "taken", ""
	}
	return fmt.Sprintf("The run has %s %s%s. May it continue, up to %s%s?", verb, used, unit, allowed, unit)
}

// limitSchema returns the JSON Schema of a decision about a limit. An approver may edit the new
// limit, which must be above what is used; the API checks that for durations and costs, which a
// schema cannot compare.
func limitSchema(f pipeline.LimitArguments) string {
	allowed := `"type":"integer","exclusiveMinimum":` + string(f.Used)
	switch f.Limit {
	case pipeline.LimitCost, pipeline.LimitCostPerDay:
		allowed = `"type":["number","string"]`
	case pipeline.LimitDuration:
		allowed = `"type":"string"`
	}
	return `{"type":"object","required":["approved"],"properties":{` +
		`"approved":{"type":"boolean","description":"Whether the run may continue."},` +
		`"editedArgs":{"type":"object","required":["allowed"],"description":"The new limit.","properties":{"allowed":{` + allowed + `}}},` +
		`"reason":{"type":"string","description":"If the run may not continue: the reason."}}}`
}
