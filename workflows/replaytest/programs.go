package replaytest

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/workflows"
)

// programs are those that recorded histories were made with.
var programs = workflows.Programs{"order": order, "hurried": hurried}

// order returns the program of examples/programs, with an activity named Price.
func order(ctx workflow.Context, a *workflows.Agent) (err error) {
	if err := a.Do(ctx, agents.Step{Name: "reserved", Tool: "reserve", Args: map[string]any{"article": "${input.text}"}}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ctx, _ := workflow.NewDisconnectedContext(ctx)
			err = errors.Join(err, a.Do(ctx, agents.Step{Name: "released", Tool: "release", Args: map[string]any{"number": "${steps.reserved.number}"}}))
		}
	}()
	var ordered string
	if err := a.Value(ctx, "input.text", &ordered); err != nil {
		return err
	}
	var price int
	priced := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(priced, "Price", ordered).Get(ctx, &price); err != nil {
		return err
	}
	if price > 50 {
		question := fmt.Sprintf("Ship ${input.text} for %d euros?", price)
		if err := a.Do(ctx, agents.Step{Name: "approved", Approve: &agents.ApproveStep{Message: question}}); err != nil {
			return err
		}
	}
	return a.Do(ctx, agents.Step{Name: "shipped", Tool: "ship", Args: map[string]any{"number": "${steps.reserved.number}"}})
}

// hurried stops waiting for people after two seconds.
func hurried(ctx workflow.Context, a *workflows.Agent) error {
	asking, cancel := workflow.WithCancel(ctx)
	defer cancel()
	answered, set := workflow.NewFuture(ctx)
	workflow.Go(asking, func(ctx workflow.Context) {
		set.Set(nil, a.Do(ctx, agents.Step{Name: "quick", Approve: &agents.ApproveStep{Message: "Quickly: yes?"}}))
	})
	workflow.NewSelector(ctx).
		AddFuture(answered, func(workflow.Future) {}).
		AddFuture(workflow.NewTimer(ctx, 2*time.Second), func(workflow.Future) { cancel() }).
		Select(ctx)
	_ = answered.Get(ctx, nil)
	return a.Do(ctx, agents.Step{Name: "shipped", Tool: "ship", Args: map[string]any{"what": "it"}})
}
