package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// AskLimit is limit.ask.v1: it writes down the question whether a run that has passed a soft limit may go on, as the one
// call of a message that is for people only. A later attempt of it finds that record, or nothing.
func (a *Activities) AskLimit(ctx context.Context, in workflows.AskLimit) (answer workflows.ModelAnswer, err error) {
	defer contain(ctx, &err)
	work, leave, err := a.attend(ctx) // it is short: a cancel of the run comes behind it
	if err != nil {
		return answer, fail(ctx, err)
	}
	defer leave()
	answer, err = a.ask(work, in)
	return answer, fail(ctx, err)
}

func (a *Activities) ask(ctx context.Context, in workflows.AskLimit) (answer workflows.ModelAnswer, err error) {
	place := speaking(in.Step, in.ID)
	if in.Beginning == (workflows.Beginning{}) {
		place.After, err = a.openStep(ctx, place, in.Step, nil)
	} else {
		place.After, err = a.Log.OpenRun(ctx, place, opening(in.Agent, in.Revision, in.Beginning), false, &agui.StepStarted{StepName: in.Name})
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
	args, err := json.Marshal(a.figuresOf(in.Excess))
	if err != nil {
		return answer, fmt.Errorf("activities: encode figures: %w", err)
	}
	return a.putQuestion(ctx, in, attempt, rules, string(args))
}

// putQuestion writes the message with the call that people decide about.
func (a *Activities) putQuestion(ctx context.Context, in workflows.AskLimit, attempt *stream.Attempt, rules *agents.Definition, args string) (workflows.ModelAnswer, error) {
	n := newNarrator(runOf(in.Run), in.ID, attempt)
	n.at, n.offered = in.At, []string{pipeline.ApproveTool}
	n.asks = func(_, arguments string) *workflows.Approval { return approval(rules, 0, arguments) }
	call := &narratedCall{id: n.run.Identify("call", in.ID+"/0"), name: pipeline.ApproveTool}
	call.providerID = call.id
	call.arguments.WriteString(args)
	n.calls, n.began = []*narratedCall{call}, []string{n.messageID}
	result, err := n.result()
	if err != nil {
		return n.answer, err
	}
	n.answer.Seq, err = attempt.Finish(ctx, result,
		&agui.ToolCallStart{ToolCallID: call.id, ToolCallName: call.name, ParentMessageID: n.messageID},
		&agui.ToolCallArgs{ToolCallID: call.id, Delta: args},
		&agui.ToolCallEnd{ToolCallID: call.id},
	)
	return n.answer, err
}

// figures are what people are shown of a limit: numbers, and durations as text. Date is that of a tenant's day, whose
// figures are those of all its runs.
type figures struct {
	Limit    string `json:"limit"`
	Used     any    `json:"used"`
	Allowed  any    `json:"allowed"`
	Currency string `json:"currency,omitempty"`
	Date     string `json:"date,omitempty"`
}

func (a *Activities) figuresOf(x workflows.Excess) figures {
	switch x.Code {
	case workflows.CodeBudgetExceeded:
		f := figures{Limit: x.Limit, Used: x.Used, Allowed: x.Allowed, Date: x.Date}
		if x.Limit == workflows.LimitCostPerDay {
			f.Used, f.Allowed, f.Currency = agents.Money(x.Used), agents.Money(x.Allowed), a.currency()
		}
		return f
	case workflows.CodeLimitCost:
		return figures{Limit: "cost", Used: agents.Money(x.Used), Allowed: agents.Money(x.Allowed), Currency: a.currency()}
	case workflows.CodeLimitDuration:
		return figures{Limit: "duration", Used: shownDuration(x.Used), Allowed: shownDuration(x.Allowed)}
	case workflows.CodeLimitTurns:
		return figures{Limit: "turns", Used: x.Used, Allowed: x.Allowed}
	}
	return figures{Limit: "tokens", Used: x.Used, Allowed: x.Allowed}
}

func shownDuration(n int64) string {
	d := time.Duration(n)
	if d > time.Minute {
		d = d.Round(time.Second)
	}
	return d.Round(time.Millisecond).String()
}

// beyond asks in words whether a run may go on.
func (a *Activities) beyond(x workflows.Excess) string {
	f := a.figuresOf(x)
	verb, unit := "used", " tokens"
	money := strings.TrimRight(" "+f.Currency, " ")
	switch f.Limit {
	case workflows.LimitTokensPerDay:
		return fmt.Sprintf("The tenant has used %v tokens on %s, UTC. May the run go on until they are %v?", f.Used, f.Date, f.Allowed)
	case workflows.LimitCostPerDay:
		return fmt.Sprintf("The tenant has spent %v%s on %s, UTC. May the run go on until it is %v%s?", f.Used, money, f.Date, f.Allowed, money)
	case "cost":
		verb, unit = "cost", money
	case "turns":
		verb, unit = "taken", " turns"
	case "duration":
		verb, unit = "taken", ""
	}
	return fmt.Sprintf("The run has %s %v%s. May it go on, up to %v%s?", verb, f.Used, unit, f.Allowed, unit)
}

// limitSchema is what an answer to a question about a limit looks like.
const limitSchema = `{"type":"object","required":["approved"],"properties":{` +
	`"approved":{"type":"boolean","description":"Whether the run may go on."},` +
	`"reason":{"type":"string","description":"If it may not: why."}}}`
