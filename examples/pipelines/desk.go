package main

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/agents"
)

type matter struct {
	Kind   string  `json:"kind"`
	Amount float64 `json:"amount,omitempty"`
}

// desk is a pipeline with a route: it classifies the customer's message, and runs the agent for that
// kind. A person approves a goodwill payment of more than 5.
func desk() (*agents.Definition, error) {
	classifier := agents.AgentStep{Instructions: "Is this about a bill, about something that does not work, or about anything else?"}
	kind := agents.Ask[matter]("kind", classifier, "classify: ${input.text}", agents.Refine(func(s *jsonschema.Schema) {
		s.Properties["kind"].Enum = []any{"bill", "fault", "other"}
	}))
	about := agents.Field(kind, &kind.Out.Kind)

	// goodwill is skipped if its condition is false, and a rejection does not end the run
	// (ContinueOnError).
	fee := agents.Call[float64]("fee", "calculate", agents.Args{"expression": fmt.Sprintf("%s * 0.1", agents.Field(kind, &kind.Out.Amount))})
	goodwill := agents.Approve("goodwill", fmt.Sprintf("Give back %s as a token of goodwill?", fee),
		agents.When(agents.Expr[bool](fee.Expr()+" > 5.0")), agents.ContinueOnError())
	billing := agents.Ask[string]("billing", agents.AgentStep{Name: "biller"}, fmt.Sprintf("bill: ${input.text} Fee: %s", fee))
	repair := agents.Ask[string]("repair", agents.AgentStep{Name: "technician"}, "${input.text}")
	anything := agents.Ask[string]("anything", agents.AgentStep{Instructions: "Answer in one friendly sentence."}, "${input.text}")

	return agents.New(agents.Definition{
		Name:        "desk",
		Description: "Classifies a customer's request, and routes it to another agent. A person approves goodwill payments above 5.",
		Model:       "scripted/desk",
		Tools:       []string{"calculate"},
	}, kind, agents.Route("concern", []agents.Case{
		agents.When(agents.Equal(about, "bill")).Then(fee, goodwill, billing),
		agents.When(agents.Equal(about, "fault")).Then(repair),
		agents.Default(anything),
	}))
}

// biller and technician are the agents that desk runs.
func biller() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "biller", Description: "Explains bills.", Model: "scripted/desk", Instructions: "You explain bills.",
	})
}

func technician() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "technician", Description: "Helps with what does not work.", Model: "scripted/desk", Instructions: "You help with what does not work.",
	})
}
