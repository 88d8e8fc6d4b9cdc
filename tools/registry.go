package tools

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Registry is a set of tools by name, with sources of further tools. It is immutable and safe for
// concurrent use.
type Registry struct {
	tools   map[string]Tool // guarded, by name
	sources []Source        // sorted by name
}

// NewRegistry guards the tools and returns a registry of them. The error joins a *SpecError for
// each mistake: invalid definitions, and tools with the same name. For a tool with a method
// Origin() string, the error contains its origin.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]Tool, len(tools))}
	var errs []error
	for _, tool := range tools {
		g, err := guard(tool)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, ok := r.tools[g.spec.Name]; ok {
			errs = append(errs, &SpecError{Tool: g.spec.Name, Reason: fmt.Sprintf("two tools have this name: %s and %s", originOf(other), originOf(g))})
		}
		r.tools[g.spec.Name] = g
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// Lookup returns the tool with exactly that name, or false. It does not search the sources.
func (r *Registry) Lookup(name string) (Tool, bool) {
	tool, ok := r.tools[name]
	return tool, ok
}

// Select returns the tools that match the patterns, each once, ordered by pattern and by name
// within a pattern. The same patterns always return the same list, which keeps a provider's prompt
// cache valid.
//
// A pattern is a name, or contains * for any characters. A pattern without a match is no error. An
// unknown name is an *UnknownToolError; all of them are joined. Tools outside of the worker, such
// as client:open_map, are unknown here: the caller removes their names first.
//
// mcp:server/pattern matches tools of a source by the source's own names. Other patterns match none
// of them. An unknown source is an *UnknownToolError too.
func (r *Registry) Select(patterns []string) ([]Tool, error) {
	var selected []Tool
	var errs []error
	isSelected := map[string]bool{}
	for _, pattern := range patterns {
		matched, err := r.match(pattern)
		if err != nil {
			errs = append(errs, err)
		}
		for _, tool := range matched {
			if name := tool.Spec().Name; !isSelected[name] {
				isSelected[name] = true
				selected = append(selected, tool)
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return selected, nil
}

// Sources returns the sources, sorted by name.
func (r *Registry) Sources() []Source { return slices.Clone(r.sources) }

// match returns the tools that one pattern matches, sorted by name.
func (r *Registry) match(pattern string) ([]Tool, error) {
	if strings.ContainsAny(pattern, `?[]\`) {
		return nil, fmt.Errorf("tool pattern %q: the only wildcard is *", pattern)
	}
	if rest, ok := strings.CutPrefix(pattern, sourcePrefix); ok {
		return r.selectOffers(rest)
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

// UnknownToolError is the error of a name that no tool has. Name is the name or pattern as written.
type UnknownToolError struct {
	Name string
}

// Error implements error.
func (e *UnknownToolError) Error() string { return fmt.Sprintf("unknown tool %q", e.Name) }

// With returns a registry with additional sources. A source owns all names that begin with its name
// and an underscore, so conflicts do not depend on the tools that it has at the moment. A tool with
// such a name, and a second source with the same name, are a *SpecError.
func (r *Registry) With(sources ...Source) (*Registry, error) {
	all := &Registry{tools: r.tools, sources: slices.Concat(r.sources, sources)}
	slices.SortStableFunc(all.sources, func(a, b Source) int { return strings.Compare(a.Name(), b.Name()) })
	for i, s := range all.sources {
		if !sourceRule.MatchString(s.Name()) {
			return nil, &SpecError{Tool: s.Name(), Reason: "the name of a source must be 1 to 32 of a-z, 0-9 and -, and begin with a letter or digit"}
		}
		if i > 0 && all.sources[i-1].Name() == s.Name() {
			return nil, &SpecError{Tool: s.Name(), Reason: fmt.Sprintf("two tools have this name: %s and %s", all.sources[i-1].Origin(), s.Origin())}
		}
		for name, tool := range r.tools {
			if strings.HasPrefix(name, s.Name()+"_") {
				return nil, &SpecError{Tool: name, Reason: fmt.Sprintf("%s: the name begins like the tools of %s (%s)", originOf(tool), s.Name(), s.Origin())}
			}
		}
	}
	return all, nil
}

// selectOffers returns the tools of sources that match a pattern without the prefix mcp:. It fails
// if the tools of a matching source are not known yet.
func (r *Registry) selectOffers(pattern string) ([]Tool, error) {
	server, toolPattern, _ := strings.Cut(pattern, "/")
	var selected []Tool
	found, isExact := false, !strings.Contains(pattern, "*")
	for _, s := range r.sources {
		if !glob(server, s.Name()) {
			continue
		}
		found = true
		offers, err := s.Offers()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sourcePrefix+s.Name(), err)
		}
		for _, o := range offers {
			if glob(toolPattern, o.Name) {
				selected = append(selected, o.Tool)
			}
		}
	}
	// A wildcard may match nothing. An exact name must exist.
	if !found && !strings.Contains(server, "*") || isExact && len(selected) == 0 {
		return nil, &UnknownToolError{Name: sourcePrefix + pattern}
	}
	return selected, nil
}
