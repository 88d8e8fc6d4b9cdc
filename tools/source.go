package tools

import (
	"path"
	"regexp"
	"strings"
)

// Source has tools that may change while the process runs, such as those of an MCP server. A
// [Registry] asks it at each selection. Its methods must be safe for concurrent use.
type Source interface {
	// Name is the name of the source in patterns: mcp:name/pattern. For models, the names of its
	// tools begin with the name and an underscore. It has lower-case letters, digits and dashes,
	// and never changes.
	Name() string
	// Origin is where the source is declared, for people.
	Origin() string
	// Offers returns the tools of the source, sorted by name. It returns an error until they are
	// known.
	Offers() ([]Offer, error)
}

// Offer is a tool of a source, with the source's own name for it. The tool must come from [Guard].
type Offer struct {
	Name string
	Tool Tool
}

// Guard wraps a tool so that it obeys the rules of the package, as [NewRegistry] does. The error is
// a *SpecError.
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

// glob is path.Match in which * also matches slashes, which some names contain. Callers ensure that
// only * is special.
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
