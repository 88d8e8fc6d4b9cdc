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

// Client tools come with each input, and run in the client: the run ends with their calls, and the
// next input has the results.

// maxClientTools bounds how many client tools a model is offered.
const maxClientTools = 128

// callable matches names that all providers accept.
var callable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// clientTools returns the tools of the input that the agent allows. A client tool with the name of
// another tool, or with a name that a provider refuses, is left out.
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
		ok, _ := path.Match(strings.TrimPrefix(p, agents.ClientPrefix), name) // an invalid pattern allows nothing
		return ok
	})
}
