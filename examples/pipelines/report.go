package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/examples/research/notes"
	"github.com/perdure/perdure/tools"
)

type outline struct {
	Questions []string `json:"questions"`
}

type judgment struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// report is a pipeline with a map and a loop: it plans questions, searches notes for all of them in
// parallel, drafts until a critic accepts the draft, asks an editor, and publishes.
func report() (*agents.Definition, error) {
	planner := agents.AgentStep{Instructions: "Plan a short report: which questions does it have to answer?"}
	writer := agents.AgentStep{Instructions: "Write the report, only from the notes that you are given. If you are told what was wrong with the last draft, mend that."}
	critic := agents.AgentStep{Instructions: "You are a strict critic of reports."}

	plan := agents.Ask[outline]("plan", planner, "plan: ${input.text}", agents.Refine(func(s *jsonschema.Schema) {
		s.Properties["questions"].MaxItems = new(10)
	}))

	question := agents.Each("question", agents.Field(plan, &plan.Out.Questions))
	found := agents.Call[notes.Found]("found", "library_search", agents.Args{"query": question})
	note := agents.Call[notes.Note]("note", "library_read", agents.Args{"id": "${steps.found.notes[0].id}"},
		agents.When(agents.Expr[bool]("size(steps.found.notes) > 0")))
	looked := agents.Map("notes", question, agents.Steps{found, note}, agents.Branches{Concurrency: 4, OnError: agents.OnErrorContinue})

	// The steps of a map have no outputs. The output of the map is a list with an entry for each
	// item.
	facts := agents.Expr[[]string]("steps.notes.filter(n, has(n.note)).map(n, n.note.text)")
	// In the first round there is no review yet.
	before := agents.Expr[string]("has(steps.review) ? steps.review.reason : 'the first'")
	draft := agents.Ask[string]("draft", writer, fmt.Sprintf("draft ${round}, %s, from: %s", before, facts))
	review := agents.Ask[judgment]("review", critic, fmt.Sprintf("judge draft ${round}: %s", draft))
	critique := agents.Loop("critique", 3, agents.Steps{draft, review}, agents.Until(agents.Field(review, &review.Out.OK)))

	signOff := agents.Approve("sign_off", "Publish this report?", agents.Args{"text": draft}, agents.Approval{Expires: 24 * time.Hour})
	publish := agents.Set("publish", []agents.Op{{Path: "/published", Value: agents.Member[string](signOff, "args", "text")}})

	return agents.New(agents.Definition{
		Name:        "report",
		Description: "Plans a report, researches its questions in parallel, revises the draft until a critic accepts it, and publishes it after an editor's approval.",
		Model:       "scripted/report",
		Tools:       []string{"library_search", "library_read"},
	}, plan, looked, critique, signOff, publish)
}

// libraryTools returns tools that search and read the notes of examples/research.
func libraryTools() ([]tools.Tool, error) {
	library, err := notes.Load()
	if err != nil {
		return nil, err
	}
	search := func(_ context.Context, in notes.Query) (notes.Found, error) { return library.Search(in.Query), nil }
	read := func(_ context.Context, in notes.Key) (notes.Note, error) { return library.Read(in.ID) }
	return []tools.Tool{
		tools.Func("library_search", "Searches the library.", search, tools.Idempotent()),
		tools.Func("library_read", "Reads a note of the library.", read, tools.Idempotent()),
	}, nil
}
