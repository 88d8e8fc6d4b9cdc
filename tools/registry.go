package tools

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Registry is a fixed set of tools by name, and of sources of more. It is safe for concurrent use.
type Registry struct {
	tools   map[string]Tool
	sources []Source // by name
}

// NewRegistry guards the tools and collects them. Everything that is wrong with
// them is reported at once, as joined *SpecError: a bad description, or two tools of one name. A tool
// that has a method Origin() string is called by what it returns.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]Tool, len(tools))}
	var wrong []error
	for _, tool := range tools {
		g, err := guard(tool)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if other, ok := r.tools[g.spec.Name]; ok {
			wrong = append(wrong, &SpecError{Tool: g.spec.Name, Reason: fmt.Sprintf("there are two of this name: %s and %s", originOf(other), originOf(g))})
		}
		r.tools[g.spec.Name] = g
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return r, nil
}

// Lookup returns the tool of that exact name. Tools of sources are not looked for.
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
//
// mcp:server/pattern names tools of a source by the source's own names; other patterns name none.
// That there is no such source is an *UnknownToolError too.
func (r *Registry) Select(patterns []string) ([]Tool, error) {
	var selected []Tool
	var wrong []error
	seen := map[string]bool{}
	for _, pattern := range patterns {
		matched, err := r.match(pattern)
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, tool := range matched {
			if name := tool.Spec().Name; !seen[name] {
				seen[name] = true
				selected = append(selected, tool)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return selected, nil
}

// Sources returns the sources, by name.
func (r *Registry) Sources() []Source { return slices.Clone(r.sources) }

func (r *Registry) match(pattern string) ([]Tool, error) {
	if strings.ContainsAny(pattern, `?[]\`) {
		return nil, fmt.Errorf("tool pattern %q: only * is special", pattern)
	}
	if own, ok := strings.CutPrefix(pattern, sourcePrefix); ok {
		return r.selectOffers(own)
	}
	if !strings.Contains(pattern, "*") {
		tool, ok := r.tools[pattern]
		if !ok {
			return nil, &UnknownToolError{Name: pattern}
		}
		return []Tool{tool}, nil
	}
	var matched []Tool
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if glob(pattern, name) {
			matched = append(matched, r.tools[name])
		}
	}
	return matched, nil
}

// UnknownToolError says that no tool has this name.
type UnknownToolError struct {
	Name string
}

func (e *UnknownToolError) Error() string { return fmt.Sprintf("unknown tool %q", e.Name) }
