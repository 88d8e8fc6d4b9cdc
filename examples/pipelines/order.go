package main

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/agents"
)

type wish struct {
	Article string `json:"article"`
	To      string `json:"to"`
}

// order is a pipeline with compensations: it reserves, charges and ships. If a step fails after all
// its attempts, or the run is cancelled, Perdure compensates the finished steps in reverse order.
func order() (*agents.Definition, error) {
	reader := agents.AgentStep{Instructions: "Which article does the customer want, and where is it to go?"}
	clerk := agents.AgentStep{Instructions: "Tell the customer in one sentence that the order is on its way."}

	// The answer must match the schema of wish; fields of it are arguments of later steps.
	wanted := agents.Ask[wish]("wanted", reader, "order: ${input.text}")
	to := agents.Field(wanted, &wanted.Out.To)

	reserved := agents.Call[deed]("reserved", "reserve", agents.Args{"article": agents.Field(wanted, &wanted.Out.Article)})
	reservation := agents.Field(reserved, &reserved.Out.Number)
	// A compensation has no name. It uses the output of the step that it compensates.
	released := agents.Call[deed]("", "release", agents.Args{"reservation": reservation})

	charged := agents.Call[deed]("charged", "charge", agents.Args{"reservation": reservation, "amount": agents.Field(reserved, &reserved.Out.Price)})
	refunded := agents.Call[deed]("", "refund", agents.Args{"payment": agents.Field(charged, &charged.Out.Number)},
		agents.Retry{Attempts: 5, Interval: 2 * time.Second})

	shipped := agents.Call[deed]("shipped", "ship", agents.Args{"reservation": reservation, "to": to},
		agents.Retry{Attempts: 2, Interval: time.Second})
	told := agents.Ask[string]("told", clerk, fmt.Sprintf("shipped: %s to %s", agents.Field(shipped, &shipped.Out.Number), to))

	return agents.New(agents.Definition{
		Name:        "order",
		Description: "Reserves, charges and ships an order. If a step fails, it compensates the finished steps.",
		Model:       "scripted/order",
		Tools:       []string{"reserve", "release", "charge", "refund", "ship"},
	}, wanted, reserved.With(agents.Compensate(released)), charged.With(agents.Compensate(refunded)), shipped, told)
}
