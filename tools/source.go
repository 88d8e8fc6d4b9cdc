package tools

import (
	"path"
	"regexp"
	"strings"
)

// Source is a set of tools that can change while the process runs, such as the tools of an MCP
// server. A [Registry] queries it at each selection. Its methods must be safe for concurrent use.
type Source interface {
	// Name is the name of the source in patterns: mcp:name/pattern. The model's names of its tools
	// begin with this name and an underscore. It consists of lower-case letters, digits and dashes,
	// and never changes.
	Name() string
	// Origin is where the source is declared, such as a file, for error messages.
	Origin() string
	// Offers returns the tools of the source, sorted by name. It returns an error until the tools
	// are known for the first time. The caller must not modify the list.
	Offers() ([]Offer, error)
}

// Offer is a tool of a [Source]. Name is the source's own name for it, which patterns match. The
// tool must come from [Guard].
type Offer struct {
	Name string
	Tool Tool
}

// Guard wraps a tool so that it follows the rules of the package, as [NewRegistry] does. The error
// is a *SpecError. A Guard of a guarded tool returns it unchanged.
func Guard(tool Tool) (Tool, error) {
	g, err := guard(tool)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// sourcePrefix is the prefix of patterns for tools of sources.
const sourcePrefix = "mcp:"

// sourceRule matches valid names of sources.
var sourceRule = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// glob reports whether name matches pattern. It is path.Match, except that * also matches slashes,
// which names of MCP tools can contain. Callers ensure that pattern has no special character except
// *.
func glob(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}

// originOf returns where a tool is declared, for error messages; "Go" for a tool without an Origin
// method.
func originOf(tool Tool) string {
	if g, ok := tool.(*guarded); ok {
		tool = g.inner
	}
	if t, ok := tool.(interface{ Origin() string }); ok {
		return t.Origin()
	}
	return "Go"
}
