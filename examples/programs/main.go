// Command programs is a worker with an agent that is a Temporal workflow, tools that are Go
// functions, and an ordinary activity. docs/guides/programs.md describes how to run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/worker"
	"github.com/perdure/perdure/workflows"
)

func main() {
	worker.Main(worker.Additions{
		Tools: []tools.Tool{
			tools.Func("reserve", "Reserves an article.", reserve, tools.Idempotent()),
			tools.Func("release", "Takes a reservation back.", release, tools.Idempotent()),
			tools.Func("ship", "Ships what was reserved.", ship, tools.Idempotent()),
		},
		Programs: workflows.Programs{"order": Order},
		Agents: []*agents.Definition{{
			Name: "order", Description: "Takes an order: reserves, asks for approval of expensive articles, and ships.",
			Workflow: "order", Tools: []string{"reserve", "release", "ship"},
		}},
		Register: func(r sdk.Registry) { r.RegisterActivity(Price) },
	})
}

type article struct {
	Article string `json:"article"`
}

type reservation struct {
	Number string `json:"number"`
}

// reserve is a tool. It is idempotent: the same article has the same reservation.
func reserve(_ context.Context, in article) (reservation, error) {
	return reservation{Number: "R-" + in.Article}, nil
}

func release(_ context.Context, in reservation) (string, error) {
	return in.Number + " is released", nil
}

func ship(_ context.Context, in reservation) (string, error) {
	return in.Number + " is on its way", nil
}

// Price is an ordinary Temporal activity: it returns the price of an article in euros.
func Price(_ context.Context, article string) (int, error) { return 10 * len(article), nil }

// Order is the agent: a workflow function that runs steps. If the order fails or is cancelled, it
// releases the reservation.
func Order(ctx workflow.Context, a *workflows.Agent) (err error) {
	reserved := agents.Call[reservation]("reserved", "reserve", agents.Args{"article": "${input.text}"})
	number := agents.Args{"number": agents.Field(reserved, &reserved.Out.Number)}
	if err := a.Do(ctx, reserved); err != nil {
		return err
	}
	// A step does not run in a cancelled context, so the release uses a disconnected one.
	defer func() {
		if err != nil {
			ctx, _ := workflow.NewDisconnectedContext(ctx)
			err = errors.Join(err, a.Do(ctx, agents.Call[string]("released", "release", number)))
		}
	}()
	// A program may evaluate the expressions of steps. The value is stored in the workflow's
	// history, so it has at most 8 KiB.
	ordered, err := workflows.Value(ctx, a, agents.Expr[string]("input.text"))
	if err != nil {
		return err
	}
	var price int
	// A program executes ordinary activities like any Temporal workflow.
	priced := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(priced, Price, ordered).Get(ctx, &price); err != nil {
		return err
	}
	if price > 50 {
		question := fmt.Sprintf("Ship ${input.text} for %d euros?", price)
		if err := a.Do(ctx, agents.Approve("approved", question)); err != nil {
			return err
		}
	}
	return a.Do(ctx, agents.Call[string]("shipped", "ship", number))
}
