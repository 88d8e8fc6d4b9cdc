package reference

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// member is one entry of a mapping, in the order of the document.
type member struct {
	name  string
	value node
}

// node is a position in a YAML or JSON document. Unlike a map it keeps the order of members. The
// zero node stands for a missing member; its methods return zero values, so that lookups can be
// chained.
type node struct {
	*yaml.Node
	root *yaml.Node
}

// parse parses a YAML or JSON document.
func parse(document []byte) (node, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(document, &n); err != nil {
		return node{}, fmt.Errorf("reference: %w", err)
	}
	return node{n.Content[0], n.Content[0]}, nil
}

// members returns the entries of a mapping in their order, including those of merged mappings (<<).
func (n node) members() []member {
	var list []member
	if n.Node == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := node{n.Content[i+1], n.root}
		if value.Kind == yaml.AliasNode {
			value.Node = value.Alias
		}
		if n.Content[i].Value == "<<" {
			list = append(list, value.members()...)
			continue
		}
		list = append(list, member{n.Content[i].Value, value})
	}
	return list
}

// items returns the entries of a list; nil for other nodes.
func (n node) items() []node {
	var list []node
	if n.Node == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, c := range n.Content {
		list = append(list, node{c, n.root})
	}
	return list
}

// get returns the member with a name; the zero node if there is none.
func (n node) get(name string) node {
	for _, m := range n.members() {
		if m.name == name {
			return m.value
		}
	}
	return node{}
}

// text returns the member with a name as text; "" if it is missing.
func (n node) text(name string) string {
	if m := n.get(name); m.Node != nil {
		return m.Value
	}
	return ""
}

// resolve follows a $ref within the document to its end, and returns the last part of the reference
// as the name of the target; "" = there is no $ref.
func (n node) resolve() (target node, name string) {
	target = n
	for ref := n.text("$ref"); strings.HasPrefix(ref, "#/"); ref = target.text("$ref") {
		target = node{n.root, n.root}
		for segment := range strings.SplitSeq(ref[2:], "/") {
			name, target = segment, target.get(segment)
		}
	}
	return target, name
}

// json returns a value as JSON on one line, with the members in their order; the text of a string
// at the top of the value.
func (n node) json() string {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value
	}
	return n.nested()
}

// nested returns a value within another one as JSON.
func (n node) nested() string {
	var parts []string
	switch {
	case n.Kind == yaml.MappingNode:
		for _, m := range n.members() {
			parts = append(parts, strconv.Quote(m.name)+": "+m.value.nested())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.items() {
			parts = append(parts, item.nested())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case n.Tag == "!!str":
		return strconv.Quote(n.Value)
	}
	return n.Value
}

// described returns the description of a schema: its own, or that of the schema that it refers to.
func (n node) described() string {
	if d := n.text("description"); d != "" {
		return d
	}
	target, _ := n.resolve()
	return target.text("description")
}

// values returns the items of a list as code.
func (n node) values() []string {
	var list []string
	for _, item := range n.items() {
		list = append(list, "`"+item.Value+"`")
	}
	return list
}
