package tools

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Source has tools that come and go while the program runs, such as those of an MCP server. A
// [Registry] asks it whenever tools are selected. It is used concurrently.
type Source interface {
	// Name is what patterns select its tools by: mcp:name/pattern. Models are offered them under
	// names that begin with the name and an underscore. It is lower-case letters, digits and
	// dashes, and never changes.
	Name() string
	// Origin says for people where the source is declared.
	Origin() string
	// Offers returns the tools that there are now, sorted by their names. It fails as long as
	// nobody knows which there are.
	Offers() ([]Offer, error)
}

// Offer is a tool of a source, and what the source itself calls it. The tool must come out of [Guard].
type Offer struct {
	Name string
	Tool Tool
}

// Guard makes a tool keep the rules of the package, as [NewRegistry] does. The error is a *SpecError.
func Guard(tool Tool) (Tool, error) {
	g, err := guard(tool)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// sourcePrefix begins patterns that name tools of sources.
const sourcePrefix = "mcp:"

var sourceRule = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// With returns a registry that has sources as well. The beginnings of their tools' names are theirs
// alone, so that whether names clash does not depend on which of a source's tools are there: a tool
// of the registry that begins like a source's, or two sources of one name, are a *SpecError.
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

// selectOffers returns the tools of sources that a pattern names, the prefix taken off.
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

// glob is path.Match in which * crosses slashes too: they are part of some names. Callers have made
// sure that only * is special.
func glob(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}

// originOf says where a tool comes from, if it says so.
func originOf(tool Tool) string {
	if g, ok := tool.(*guarded); ok {
		tool = g.inner
	}
	if t, ok := tool.(interface{ Origin() string }); ok {
		return t.Origin()
	}
	return "Go"
}
