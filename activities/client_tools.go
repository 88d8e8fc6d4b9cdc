package activities

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// A client's tools come with each of its inputs, and run there: the run ends with their calls, and the
// client's next input has the results.

// maxClientTools bounds how many of them a model is offered.
const maxClientTools = 128

// callable are names that all providers take.
var callable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// clientTools are the tools of the run's input that the agent lets its clients bring. One that has the
// name of a tool of ours is left out, as is one whose name no model could say.
func (a *Activities) clientTools(ctx context.Context, d *agents.Definition, thread *snapshot.Snapshot, ours []llm.Tool) ([]llm.Tool, error) {
	_, patterns := agents.SplitTools(d.Tools)
	if !thread.Tools || len(patterns) == 0 {
		return nil, nil
	}
	in, err := a.Log.Input(ctx, thread.Input)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, t := range ours {
		taken[t.Name] = true
	}
	var theirs []llm.Tool
	for _, t := range in.Input.Tools {
		if len(theirs) < maxClientTools && !taken[t.Name] && callable.MatchString(t.Name) && allows(patterns, t.Name) {
			taken[t.Name] = true
			theirs = append(theirs, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return theirs, nil
}

func allows(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(strings.TrimPrefix(p, agents.ClientPrefix), name) // what is no pattern allows nothing
		return ok
	})
}
