package agents

import (
	"fmt"
	"slices"
	"strings"
)

// This file checks what changes the state: the results of tools, and the tool of the model.

// resultMistakes returns the mistakes in Results.
func (s State) resultMistakes(patterns []string) []mistake {
	if len(s.Results) > maxMappings {
		return []mistake{newMistake("state.results", "must be at most %d, not %d", maxMappings, len(s.Results))}
	}
	callable, ofClient := SplitTools(patterns)
	callable = append(callable, Subagents(patterns)...)
	for _, pattern := range ofClient {
		callable = append(callable, strings.TrimPrefix(pattern, ClientPrefix))
	}
	t := &treeCheck{}
	mapped := map[string]int{}
	for i, m := range s.Results {
		at := fmt.Sprintf("state.results[%d]", i)
		first, twice := mapped[m.Tool]
		switch {
		case m.Tool == "" || len(m.Set) == 0:
			t.addMistake(at, "needs a tool and set")
			continue
		case !toolName.MatchString(m.Tool):
			t.addMistake(at+".tool", "%.80q must be the name of a tool", m.Tool)
		case twice:
			t.addMistake(at+".tool", "%q is already the tool of state.results[%d]", m.Tool, first)
		case !slices.ContainsFunc(callable, func(pattern string) bool { return namesTool(pattern, m.Tool) }):
			t.addMistake(at+".tool", "%q is not one of the agent's tools%s", m.Tool, suggestion(m.Tool, callable))
		}
		mapped[m.Tool] = i
		t.checkOps(at+".set", m.Set, scope{variables: resultVariables, isComplete: true})
	}
	return t.mistakes
}

// writeMistakes returns the mistakes in Write.
func (s State) writeMistakes(patterns []string) []mistake {
	if len(s.Write) > maxWrites {
		return []mistake{newMistake("state.write", "must be at most %d, not %d", maxWrites, len(s.Write))}
	}
	var found []mistake
	if len(s.Write) > 0 && slices.Contains(patterns, StateTool) {
		found = append(found, newMistake("state.write", "adds the tool %q, which the agent's tools have already", StateTool))
	}
	arguments := map[string]int{}
	for i, w := range s.Write {
		at := fmt.Sprintf("state.write[%d]", i)
		if w.Path == "" {
			found = append(found, newMistake(at, "needs a path"))
			continue
		}
		t := &treeCheck{}
		if t.checkPointer(at+".path", "path", w.Path, true, scope{isComplete: true}); len(t.mistakes) > 0 {
			found = append(found, t.mistakes...)
			continue
		}
		name := w.ArgumentName()
		first, twice := arguments[name]
		switch {
		case strings.Contains(w.Path, "${"):
			found = append(found, newMistake(at+".path", "must not have ${ }: the model may write only declared paths"))
		case !toolName.MatchString(name):
			found = append(found, newMistake(at, "needs an argument of 1 to 64 letters, digits, _ and -: %.80q is none", name))
		case twice:
			found = append(found, newMistake(at, "needs another argument: %q is already that of state.write[%d]", name, first))
		}
		arguments[name] = i
		if len(w.Schema) > 0 {
			if err := (&Output{Schema: w.Schema}).compile(); err != nil {
				found = append(found, newMistake(at+".schema", "is not a valid JSON Schema: %s", err))
			}
		}
	}
	return found
}
