package agents

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// The files of this package that parse YAML share this reader. It works on the node tree of the
// YAML library, because decoding into structs stops at the first unknown key, and has no position
// for a well-formed value that is invalid. A reader function such as text(&d.Name) takes the node
// of a value. It returns "" after it has stored the value, or otherwise the end of a sentence that
// begins with the key.

// MaxFile bounds the size of a definition's file, in bytes.
const MaxFile = 1 << 20

// maxErrors bounds the mistakes in one error.
const maxErrors = 20

// newReader returns a reader for one document, or for one file; file is the name for errors.
func newReader(file string) *reader {
	return &reader{file: file, nodes: map[string]*yaml.Node{}}
}

// reader parses one document and collects its mistakes with their positions. It is used by one
// goroutine, once. Keys are paths such as steps[2].retry.attempts.
type reader struct {
	file   string
	nodes  map[string]*yaml.Node // the value of each key of the document
	failed map[string]bool       // keys with a mistake
	errs   []*DefinitionError    // in the order of discovery
	tree   int                   // number of steps so far; aliases can multiply them
	depth  int                   // nesting depth of the current list of steps
}

// field is a key of a mapping with the reader function of its value.
type field struct {
	key  string
	read func(node *yaml.Node) (reason string)
}

// report adds a mistake at the position of a node; nil = no position.
func (r *reader) report(key string, at *yaml.Node, reason string) {
	e := &DefinitionError{File: r.file, Key: key, Reason: reason}
	if at != nil {
		e.Line, e.Column = at.Line, at.Column
	}
	if r.failed == nil {
		r.failed = map[string]bool{}
	}
	r.failed[key] = true
	r.errs = append(r.errs, e)
}

// err returns the mistakes in the order of their lines, at most maxErrors; nil = there are none.
func (r *reader) err() error {
	slices.SortStableFunc(r.errs, func(a, b *DefinitionError) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for _, e := range r.errs[:min(len(r.errs), maxErrors)] {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// documents returns the root mappings of a file's documents. If one of them cannot be read, it
// reports the mistake and returns nil.
func (r *reader) documents(data []byte) []*yaml.Node {
	if len(data) > MaxFile {
		r.report("", nil, fmt.Sprintf("is larger than %d bytes", MaxFile))
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var roots []*yaml.Node
	size := expansion{anchors: map[*yaml.Node]expansion{}}
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && len(roots) == 0:
			r.report("", &yaml.Node{Line: 1}, "is empty: it needs the keys of a definition, such as name and model of an agent")
			return nil
		case errors.Is(err, io.EOF):
			return roots
		case err != nil:
			r.syntax(err, data)
			return nil
		}
		root := document.Content[0]
		if root.Kind != yaml.MappingNode {
			r.report("", root, "expected keys and values, got "+describe(root))
			return nil
		}
		if reason := size.add(root); reason != "" {
			r.report("", root, reason)
			return nil
		}
		roots = append(roots, root)
	}
}

// syntaxText parses the message of a syntax error: the library gives the line of such an error in
// no other form.
var syntaxText = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// parserText matches the messages of the library's parser, as opposed to its scanner. The library
// counts their lines from 0, and leaves out line 0 (parser.fail in decode.go, parserc.go).
var parserText = regexp.MustCompile(`^(?:did not find expected (?:<|node content|'-' indicator|key|',' or )|found (?:undefined tag handle|duplicate %|incompatible YAML))`)

// syntax reports a syntax error of the library in a file.
func (r *reader) syntax(err error, data []byte) {
	e := &DefinitionError{File: r.file, Reason: "is not valid YAML: " + err.Error()}
	if parts := syntaxText.FindStringSubmatch(err.Error()); parts != nil {
		e.Line, _ = strconv.Atoi(parts[1])
		e.Reason = "not valid YAML: " + parts[2]
		if lines := 1 + bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")); parserText.MatchString(parts[2]) {
			e.Line = min(e.Line+1, lines) // an error at the end of the file is in its last line
		}
	}
	r.errs = append(r.errs, e)
}

// mapping reads the values of a mapping by fields, and reports unknown and repeated keys. prefix is
// the path of the mapping with a dot at its end; "" = the document.
func (r *reader) mapping(prefix string, node *yaml.Node, fields []field) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		f, ok := find(fields, key)
		path := prefix + key.Value
		switch {
		case !ok:
			r.report(path, key, fmt.Sprintf("unknown key %.80q%s", path, suggestion(key.Value, keys(fields))))
		case r.nodes[path] != nil:
			r.report(path, key, fmt.Sprintf("key %q appears twice, first in line %d", path, r.nodes[path].Line))
		default:
			r.nodes[path] = value
			if reason := f.read(value); reason != "" {
				r.report(path, value, path+" "+reason)
			}
		}
	}
}

// find returns the field of a key.
func find(fields []field, key *yaml.Node) (field, bool) {
	for _, f := range fields {
		if key.Kind == yaml.ScalarNode && f.key == key.Value {
			return f, true
		}
	}
	return field{}, false
}

// keys returns the keys of fields, for suggestions.
func keys(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return names
}

// resolve follows an alias. One step suffices: YAML allows no anchor on an alias.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
