package agents

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse parses a definition from one YAML document of at most 1 MiB, fills in the defaults, and
// validates it. filename is for errors: a *DefinitionError, or up to twenty of them joined, in the
// order of their lines.
func Parse(filename string, data []byte) (*Definition, error) {
	located, err := ParseLocated(filename, data)
	if err != nil {
		return nil, err
	}
	return located.Definition, nil
}

// ParseLocated is Parse with the positions of the definition's keys. With an error, it returns the
// definition as far as it can be read, or nil; that is for finding further mistakes only.
func ParseLocated(filename string, data []byte) (*Located, error) {
	r := newReader(filename)
	roots := r.documents(data)
	if len(roots) > 1 {
		r.report("", roots[1], "a second document begins here: the file must have one definition")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	d := r.agent(roots[0])
	return &Located{d, SourcePosition{File: filename, Line: roots[0].Line, keys: r.nodes}}, r.err()
}

// agent reads a document of kind agent, and reports its mistakes.
func (r *reader) agent(root *yaml.Node) *Definition {
	d := &Definition{}
	r.mapping("", root, []field{
		{"kind", r.kind(kindAgent)},
		{"name", text(&d.Name)},
		{"description", text(&d.Description)},
		{"model", r.models("model", &d.Model, &d.Fallback)},
		{"fallback", r.fallback("", &d.Fallback)},
		{"reasoning", r.reasoning("", &d.Reasoning)},
		{"instructions", text(&d.Instructions)},
		{"tools", r.texts("tools", &d.Tools)},
		{"steps", r.steps("steps", &d.Steps)},
		{"workflow", text(&d.Workflow)},
		{"remote", r.remote(&d.Remote)},
		{"triggers", r.triggers(&d.Triggers)},
		{"approvals", r.approvals(&d.Approvals)},
		{"output", r.result(&d.Output)},
		{"state", r.state("", &d.State)},
		{"context", r.context(&d.Context)},
		{"titleModel", text(&d.TitleModel)},
		{"limits", r.limits("", &d.Limits)},
		{"input", r.input(&d.Input)},
		{"history", oneOf(&d.History, histories...)},
		{"onNewInput", oneOf(&d.OnNewInput, newInputs...)},
		{"onMissingToolResult", oneOf(&d.OnMissingToolResult, missingResults...)},
		{"legacyInterrupts", flag(&d.LegacyInterrupts)},
	})
	r.validate(d, root)
	d.Limits = d.Limits.orDefault()
	d.withoutDefaults()
	return d
}

// validate reports the mistakes that concern the definition as a whole, at their positions in the
// file. It skips keys that already have a mistake.
func (r *reader) validate(d *Definition, root *yaml.Node) {
	for _, m := range d.mistakes() {
		at, given := r.nodes[m.key]
		if !given && (strings.HasPrefix(m.key, "steps[") || strings.HasPrefix(m.key, "output.")) {
			r.reportEnclosing(m)
			continue
		}
		switch {
		case r.failed[m.key] || (strings.HasPrefix(m.key, "steps") || m.key == softKey) && r.failedIn(m.key):
		case !given:
			r.report(m.key, root, m.key+" is missing")
		case m.index >= 0:
			r.reportEntry(m, at)
		default:
			r.report(m.key, at, m.reason)
		}
	}
}

// reportEnclosing reports a mistake about a key that a step or the output does not have, at the
// nearest enclosing key.
func (r *reader) reportEnclosing(c mistake) {
	at := c.key
	for r.nodes[at] == nil {
		at = at[:strings.LastIndexAny(at, ".[")]
	}
	if !r.failedIn(at) {
		r.report(c.key, r.nodes[at], c.reason)
	}
}

// failedIn reports whether a key, or a key below it, already has a mistake. A misspelled key there
// may be the one that seems to be missing.
func (r *reader) failedIn(key string) bool {
	for failed := range r.failed {
		if rest, ok := strings.CutPrefix(failed, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// reportEntry reports a mistake at an entry of a list.
func (r *reader) reportEntry(c mistake, list *yaml.Node) {
	r.errs = append(r.errs, &DefinitionError{
		File: r.file, Key: c.key, Reason: c.reason,
		Line: list.Content[c.index].Line, Column: list.Content[c.index].Column,
	})
}
