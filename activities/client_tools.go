package activities

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

// Client tools come with each input, and run in the client. The run ends, or is held, with their
// calls, and the next input or a decision has the results.

// maxClientTools bounds how many client tools a model is offered. Further ones are left out.
const maxClientTools = 128

// callableName matches names of tools that all providers accept.
var callableName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// clientTools returns the client tools of the input that the patterns of the agent allow, in the
// order of the input. offered are the other tools of the request, which have precedence. A tool
// whose name a provider would refuse is left out, because it would fail the whole request.
func (a *Activities) clientTools(ctx context.Context, d *agents.Definition, snap *snapshot.Snapshot, offered []llm.Tool) ([]llm.Tool, error) {
	_, patterns := agents.SplitTools(d.Tools)
	// The snapshot knows whether the input has tools, which saves reading the input.
	if !snap.Tools || len(patterns) == 0 {
		return nil, nil
	}
	in, err := a.Log.Input(ctx, snap.Input)
	if err != nil {
		return nil, err
	}
	// Names must be unique in a request. Tools of the worker have precedence over those of the
	// client.
	isTaken := map[string]bool{}
	for _, t := range offered {
		isTaken[t.Name] = true
	}
	var clientTools []llm.Tool
	for _, t := range in.Input.Tools {
		if len(clientTools) < maxClientTools && !isTaken[t.Name] && callableName.MatchString(t.Name) && allows(patterns, t.Name) {
			isTaken[t.Name] = true
			clientTools = append(clientTools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return clientTools, nil
}

// ignoredTools returns the names of the client tools in an input of which the agent allows none;
// nil = there are none, or the agent allows some. It returns them for the first model call of a run
// only.
func (a *Activities) ignoredTools(ctx context.Context, d *agents.Definition, in runs.ModelCall, snap *snapshot.Snapshot) ([]string, error) {
	if _, patterns := agents.SplitTools(d.Tools); in.Beginning == (runs.Beginning{}) || !snap.Tools || len(patterns) > 0 {
		return nil, nil
	}
	input, err := a.Log.Input(ctx, snap.Input)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range input.Input.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

// allows reports whether one of the agent's patterns for client tools matches a name.
func allows(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		// An invalid pattern allows nothing.
		ok, _ := path.Match(strings.TrimPrefix(p, agents.ClientPrefix), name)
		return ok
	})
}
