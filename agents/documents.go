package agents

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Folder has the documents of a folder of files, each kind sorted by name.
type Folder struct {
	Agents  []*Definition
	Tools   []*Tool
	Servers []*Server
	Scripts []*Script

	positions map[string]SourcePosition // by kind and name
}

// ParseFile parses the documents of a YAML file of at most 1 MiB, of all kinds. Errors are those of
// [Parse]. It does not check that names are unique.
func ParseFile(filename string, data []byte) (*Folder, error) {
	file := newReader(filename)
	found, names := file.folder(data)
	if err := file.err(); err != nil {
		return nil, err
	}
	found.positions = map[string]SourcePosition{}
	for _, name := range names {
		found.positions[name.kind+" "+name.name] = name.position
	}
	return found, nil
}

// folder reads all documents of a file. names has their names and positions, in the order of the
// documents.
func (r *reader) folder(data []byte) (found *Folder, names []documentName) {
	found = &Folder{}
	for _, root := range r.documents(data) {
		d := newReader(r.file)
		kind := kindOf(root)
		var name string
		switch kind {
		case kindTool:
			t := d.tool(root)
			found.Tools, name = append(found.Tools, t), t.Name
		case kindServer:
			s := d.server(root)
			found.Servers, name = append(found.Servers, s), s.Name
		case kindScript:
			s := d.script(root)
			found.Scripts, name = append(found.Scripts, s), s.Name
		default:
			a := d.agent(root)
			found.Agents, name = append(found.Agents, a), a.Name
		}
		r.errs = append(r.errs, d.errs...)
		names = append(names, documentName{kind: kind, name: name, position: SourcePosition{File: r.file, Line: root.Line, keys: d.nodes}})
	}
	return found, names
}

// documentName is the kind, the name and the position of a document.
type documentName struct {
	kind, name string
	position   SourcePosition
}

// The kinds of documents, as in the key kind.
const (
	kindAgent  = "agent"
	kindTool   = "tool"
	kindServer = "mcp"
	kindScript = "script"
)

var kinds = []string{kindAgent, kindTool, kindServer, kindScript}

// kindOf returns the kind of a document. A document with an unknown kind is read as an agent; the
// key kind then has a mistake.
func kindOf(root *yaml.Node) string {
	for i := 0; i+1 < len(root.Content); i += 2 {
		value := resolve(root.Content[i+1])
		if root.Content[i].Value == "kind" && isText(value) && slices.Contains(kinds, value.Value) {
			return value.Value
		}
	}
	return kindAgent
}

// kind reads the key kind of a document, which must be want.
func (r *reader) kind(want string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var kind string
		if reason := text(&kind)(node); reason != "" {
			return reason
		}
		switch {
		case kind == want:
			return ""
		case slices.Contains(kinds, kind):
			return fmt.Sprintf("must be %s here, not %s", want, kind)
		}
		return fmt.Sprintf("must be %s, not %.80q", strings.Join(kinds, ", "), kind)
	}
}

// Join adds the documents of another folder. It does not check their names.
func (f *Folder) Join(other *Folder) {
	f.Agents = append(f.Agents, other.Agents...)
	f.Tools = append(f.Tools, other.Tools...)
	f.Servers = append(f.Servers, other.Servers...)
	f.Scripts = append(f.Scripts, other.Scripts...)
	if f.positions == nil {
		f.positions = map[string]SourcePosition{}
	}
	maps.Copy(f.positions, other.positions)
}

// merge adds the documents of a file, and reports names that an earlier document has. positions has
// those of all names so far.
func (f *Folder) merge(other *Folder, names []documentName, positions map[string]SourcePosition) error {
	var errs []error
	for _, name := range names {
		key := name.kind + " " + name.name
		if first, ok := positions[key]; ok {
			errs = append(errs, name.position.ErrorAt("name", fmt.Sprintf("name %q is taken by %s", name.name, first)))
			continue
		}
		positions[key] = name.position
	}
	f.Join(other)
	return errors.Join(errs...)
}
