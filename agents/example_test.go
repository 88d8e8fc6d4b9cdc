package agents_test

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/agents"
)

type Plan struct {
	Queries []string `json:"queries"`
}

type Page struct {
	ID string `json:"id"`
}

func Research() (*agents.Definition, error) {
	planner := agents.AgentStep{Instructions: "You plan research."}
	writer := agents.AgentStep{Instructions: "You write reports."}

	plan := agents.Ask[Plan]("plan", planner, "Make a plan for: ${input.text}")
	query := agents.Each("query", agents.Field(plan, &plan.Out.Queries))
	found := agents.Call[string]("found", "search", agents.Args{"q": query})
	searches := agents.Map("searches", query, agents.Steps{found},
		agents.Branches{Concurrency: 20, OnError: agents.OnErrorContinue})
	draft := agents.Ask[string]("draft", writer,
		fmt.Sprintf("Write a report from: %s", agents.Collect(searches, found)))
	signOff := agents.Approve("sign_off", fmt.Sprintf("Publish this? %s", draft),
		agents.Approval{Approvers: []string{"role:editor"}, Expires: 24 * time.Hour})
	published := agents.Call[Page]("published", "publish", agents.Args{"text": draft},
		agents.Retry{Attempts: 3, Interval: 5 * time.Second})
	unpublished := agents.Call[string]("", "unpublish",
		agents.Args{"id": agents.Field(published, &published.Out.ID)})

	return agents.New(agents.Definition{
		Name:        "research",
		Description: "Researches a topic and publishes what it finds.",
		Model:       "openai/gpt-5-mini",
		Tools:       []string{"search", "publish", "unpublish"},
	}, plan, searches, draft, signOff, published.With(agents.Compensate(unpublished)))
}

func ExampleNew() {
	d, err := Research()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range d.Steps {
		fmt.Println(step.Name)
	}
	// Output:
	// plan
	// searches
	// draft
	// sign_off
	// published
}
