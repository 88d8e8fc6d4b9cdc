package tools

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Source has tools that may change while the process runs, such as those of an MCP server. A [Registry] asks it at each selection. Its methods must
// be safe for concurrent use.
type Source interface {
	// Name is the name of the source in patterns: mcp:name/pattern. For models, the names of its tools begin with the name and an underscore. It
	// has lower-case letters, digits and dashes, and never changes.
	Name() string
	// Origin is where the source is declared, for people.
	Origin() string
	// Offers returns the tools of the source, sorted by name. It returns an error until they are known.
	Offers() ([]Offer, error)
}

// Offer is a tool of a source, with the source's own name for it. The tool must come from [Guard].
type Offer struct {
	Name string
	Tool Tool
}

// Guard wraps a tool so that it obeys the rules of the package, as [NewRegistry] does. The error is a *SpecError.
func Guard(tool Tool) (Tool, error) {
	g, err := guard(tool)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// sourcePrefix is the prefix of patterns for tools of sources.
const sourcePrefix = "mcp:"

var sourceRule = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// With returns a registry with sources. A source owns the prefix of its tools' names, so conflicts do not depend on which tools it has at the
// moment: a tool of the registry with such a prefix, or two sources with the same name, are a *SpecError.
func (r *Registry) With(sources ...Source) (*Registry, error) {
	all := &Registry{tools: r.tools, sources: slices.Concat(r.sources, sources)}
	slices.SortStableFunc(all.sources, func(a, b Source) int { return strings.Compare(a.Name(), b.Name()) })
	for i, s := range all.sources {
		if !sourceRule.MatchString(s.Name()) {
			return nil, &SpecError{Tool: s.Name(), Reason: "the name of a source must be 1 to 32 of a-z, 0-9 and -, and begin with a letter or digit"}
		}
		if i > 0 && all.sources[i-1].Name() == s.Name() {
			return nil, &SpecError{Tool: s.Name(), Reason: fmt.Sprintf("there are two of this name: %s and %s", all.sources[i-1].Origin(), s.Origin())}
		}
		for name, tool := range r.tools {
			if strings.HasPrefix(name, s.Name()+"_") {
				return nil, &SpecError{Tool: name, Reason: fmt.Sprintf("%s: its name begins like the tools of %s (%s)", originOf(tool), s.Name(), s.Origin())}
			}
		}
	}
	return all, nil
}

// selectOffers returns the tools of sources that match a pattern without its prefix.
func (r *Registry) selectOffers(pattern string) ([]Tool, error) {
	server, own, _ := strings.Cut(pattern, "/")
	var selected []Tool
	known, exact := false, !strings.Contains(pattern, "*")
	for _, s := range r.sources {
		if !glob(server, s.Name()) {
			continue
		}
		known = true
		offers, err := s.Offers()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sourcePrefix+s.Name(), err)
		}
		for _, o := range offers {
			if glob(own, o.Name) {
				selected = append(selected, o.Tool)
			}
		}
	}
	if !known && !strings.Contains(server, "*") || exact && len(selected) == 0 {
		return nil, &UnknownToolError{Name: sourcePrefix + pattern}
	}
	return selected, nil
}

// glob is path.Match in which * also matches slashes, which some names contain. Callers ensure that only * is special.
func glob(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}

// originOf returns the origin of a tool; "" = unknown.
func originOf(tool Tool) string {
	if g, ok := tool.(*guarded); ok {
		tool = g.inner
	}
	if t, ok := tool.(interface{ Origin() string }); ok {
		return t.Origin()
	}
	return "Go"
}
