package tools

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Registry is a fixed set of tools by name. It is safe for concurrent use.
type Registry struct {
	tools map[string]Tool
}

// NewRegistry guards the tools and collects them. Everything that is wrong with
// them is reported at once, as joined *SpecError: a bad description, or two tools of one name.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]Tool, len(tools))}
	var wrong []error
	for _, tool := range tools {
		g, err := guard(tool)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if _, ok := r.tools[g.spec.Name]; ok {
			wrong = append(wrong, &SpecError{Tool: g.spec.Name, Reason: "there are two of this name"})
		}
		r.tools[g.spec.Name] = g
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return r, nil
}

// Lookup returns the tool of that exact name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	tool, ok := r.tools[name]
	return tool, ok
}

// Select returns the tools that the patterns name, each once, in the order of
// the patterns and by name within one: the same patterns always give the same
// list, which keeps a provider's prompt cache warm.
//
// A pattern is a name, or has * for any run of characters. One that matches nothing is
// fine; a name that is not there is an *UnknownToolError, and all of them are
// joined. Names of tools that live elsewhere, such as client:open_map, are
// unknown here; the caller takes them out first.
func (r *Registry) Select(patterns []string) ([]Tool, error) {
	var selected []Tool
	var wrong []error
	seen := map[string]bool{}
	for _, pattern := range patterns {
		names, err := r.match(pattern)
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				selected = append(selected, r.tools[name])
			}
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return selected, nil
}

func (r *Registry) match(pattern string) ([]string, error) {
	if !strings.Contains(pattern, "*") {
		if _, ok := r.tools[pattern]; !ok {
			return nil, &UnknownToolError{Name: pattern}
		}
		return []string{pattern}, nil
	}
	if strings.ContainsAny(pattern, `?[]\`) {
		return nil, fmt.Errorf("tool pattern %q: only * is special", pattern)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if ok, _ := path.Match(pattern, name); ok { // the one error it knows is ruled out above
			names = append(names, name)
		}
	}
	return names, nil
}

// UnknownToolError says that no tool has this name.
type UnknownToolError struct {
	Name string
}

func (e *UnknownToolError) Error() string { return fmt.Sprintf("unknown tool %q", e.Name) }
