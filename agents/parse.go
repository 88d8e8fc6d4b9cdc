package agents

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a definition from one YAML document of at most 1 MiB, and fills in the defaults. The
// file's name is for errors: a *DefinitionError, or up to twenty joined, in the order of their
// lines.
func Parse(filename string, data []byte) (*Definition, error) {
	r := newReader(filename)
	roots := r.documents(data)
	if len(roots) > 1 {
		r.report("", roots[1], "a second document begins here; there must be one definition in a file")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	d := r.agent(roots[0])
	if err := r.err(); err != nil {
		return nil, err
	}
	return d, nil
}

func (r *reader) agent(root *yaml.Node) *Definition {
	d := &Definition{}
	r.mapping("", root, []field{
		{"kind", r.kind(kindAgent)},
		{"name", text(&d.Name)},
		{"description", text(&d.Description)},
		{"model", text(&d.Model)},
		{"reasoning", r.reasoning("", &d.Reasoning)},
		{"instructions", text(&d.Instructions)},
		{"tools", r.texts("tools", &d.Tools)},
		{"steps", r.steps("steps", &d.Steps)},
		{"workflow", text(&d.Workflow)},
		{"approvals", r.approvals(&d.Approvals)},
		{"state", r.state("", &d.State)},
		{"context", r.context(&d.Context)},
		{"limits", r.limits("", &d.Limits)},
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

// validate adds the mistakes that only the whole definition shows, except for keys that already
// have one.
func (r *reader) validate(d *Definition, root *yaml.Node) {
	for _, c := range d.complaints() {
		at, given := r.places[c.key]
		if !given && strings.HasPrefix(c.key, "steps[") {
			r.complainStep(c)
			continue
		}
		switch {
		case r.failed[c.key] || (strings.HasPrefix(c.key, "steps") || c.key == softKey) && r.failedIn(c.key):
		case !given:
			r.report(c.key, root, c.key+" is missing")
		case c.index >= 0:
			r.complainEntry(c, at)
		default:
			r.report(c.key, at, c.reason)
		}
	}
}

// complainStep reports that a step lacks something, at the step.
func (r *reader) complainStep(c mistake) {
	at := c.key
	for r.places[at] == nil {
		at = at[:strings.LastIndexAny(at, ".[")]
	}
	if !r.failedIn(at) {
		r.report(c.key, r.places[at], c.reason)
	}
}

// failedIn reports whether a key, or one in its value, already has a mistake. What seems to be
// missing may be meant there.
func (r *reader) failedIn(key string) bool {
	for failed := range r.failed {
		if rest, ok := strings.CutPrefix(failed, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (r *reader) complainEntry(c mistake, list *yaml.Node) {
	r.wrong = append(r.wrong, &DefinitionError{
		File: r.file, Key: c.key, Reason: c.reason,
		Line: list.Content[c.index].Line, Column: list.Content[c.index].Column,
	})
}
