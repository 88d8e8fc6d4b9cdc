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

	places map[string]SourcePosition // by kind and name
}

// ParseFile parses the documents of a YAML file of at most 1 MiB, of all kinds. Errors are those of
// [Parse]. It does not check that names are unique.
func ParseFile(filename string, data []byte) (*Folder, error) {
	file := newReader(filename)
	found, places := file.folder(data)
	if err := file.err(); err != nil {
		return nil, err
	}
	found.places = map[string]SourcePosition{}
	for _, n := range places {
		found.places[n.kind+" "+n.name] = n.place
	}
	return found, nil
}

// folder reads all documents of a file. places has their positions, in the order of the documents.
func (r *reader) folder(data []byte) (found *Folder, places []named) {
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
		r.wrong = append(r.wrong, d.wrong...)
		places = append(places, named{kind: kind, name: name, place: SourcePosition{File: r.file, Line: root.Line, keys: d.places}})
	}
	return found, places
}

// named is the kind, the name and the position of a document.
type named struct {
	kind, name string
	place      SourcePosition
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
func (f *Folder) Join(more *Folder) {
	f.Agents = append(f.Agents, more.Agents...)
	f.Tools = append(f.Tools, more.Tools...)
	f.Servers = append(f.Servers, more.Servers...)
	f.Scripts = append(f.Scripts, more.Scripts...)
	if f.places == nil {
		f.places = map[string]SourcePosition{}
	}
	maps.Copy(f.places, more.places)
}

// merge adds the documents of a file, and reports names that an earlier document has. taken has the
// positions of all names so far.
func (f *Folder) merge(more *Folder, places []named, taken map[string]SourcePosition) error {
	var wrong []error
	for _, n := range places {
		key := n.kind + " " + n.name
		if first, ok := taken[key]; ok {
			wrong = append(wrong, n.place.Wrong("name", fmt.Sprintf("name %q is taken by %s", n.name, first)))
			continue
		}
		taken[key] = n.place
	}
	f.Join(more)
	return errors.Join(wrong...)
}
