package agents

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxFileValues bounds the keys and values of a file.
const maxFileValues = 100_000

// expansion measures documents with each alias replaced by what it names. A few lines with aliases
// of aliases stand for any amount of text, which the definition, its JSON and its revisions would
// repeat.
type expansion struct {
	bytes, values int
	anchors       map[*yaml.Node]expansion // what has been measured completely
}

// add measures a node, and returns the reason if the documents are too large; "" = they are not.
func (e *expansion) add(node *yaml.Node) (reason string) {
	e.measure(node)
	switch {
	case e.bytes > MaxFile:
		return fmt.Sprintf("is larger than %d bytes when its aliases are replaced", MaxFile)
	case e.values > maxFileValues:
		return fmt.Sprintf("has more than %d keys and values", maxFileValues)
	}
	return ""
}

// measure adds a node. It stops at a bound, so that sums cannot overflow.
func (e *expansion) measure(node *yaml.Node) {
	if e.bytes > MaxFile || e.values > maxFileValues {
		return
	}
	if node.Kind == yaml.AliasNode {
		known := e.anchors[node.Alias] // zero if the alias is in what it names: readers refuse such a cycle
		e.bytes, e.values = e.bytes+known.bytes, e.values+known.values+1
		return
	}
	before := *e
	e.bytes, e.values = e.bytes+len(node.Value), e.values+1
	for _, child := range node.Content {
		e.measure(child)
	}
	if node.Anchor != "" {
		e.anchors[node] = expansion{bytes: e.bytes - before.bytes, values: e.values - before.values}
	}
}
