package agents

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Bounds of a JSON value in a file.
const (
	maxNodes = 50_000
	maxDepth = 100
)

// schema reads a JSON Schema that is written in YAML. Its consumers check that it is a valid
// schema.
func schema(into *json.RawMessage) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		c := &converter{}
		value := c.value(node, 0)
		if c.reason != "" {
			return c.reason
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return "has no JSON form: " + err.Error()
		}
		*into = raw
		return ""
	}
}

// converter converts a YAML node to a JSON value. Keys and dates become strings. It bounds the
// number and depth of nodes, because YAML aliases can multiply content. It is used once.
type converter struct {
	nodes int
	// reason is the first mistake; "" = none.
	reason string
}

// refuse records a mistake, and returns nil as the value.
func (c *converter) refuse(format string, args ...any) any {
	if c.reason == "" {
		c.reason = fmt.Sprintf(format, args...)
	}
	return nil
}

// value converts a node.
func (c *converter) value(node *yaml.Node, depth int) any {
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		return c.refuse("is too large")
	}
	node = resolve(node)
	switch node.Kind {
	case yaml.MappingNode:
		return c.object(node, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, entry := range node.Content {
			if list = append(list, c.value(entry, depth+1)); c.reason != "" {
				return nil
			}
		}
		return list
	}
	return c.scalar(node)
}

// object converts a mapping. Repeated keys and merge keys (<<) are mistakes.
func (c *converter) object(node *yaml.Node, depth int) any {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return c.refuse("has a key in line %d that JSON does not support", key.Line)
		}
		if _, isRepeated := object[key.Value]; isRepeated {
			return c.refuse("has the key %.80q twice, again in line %d", key.Value, key.Line)
		}
		if object[key.Value] = c.value(node.Content[i+1], depth+1); c.reason != "" {
			return nil
		}
	}
	return object
}

// scalar converts a scalar by its YAML type.
func (c *converter) scalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := node.Decode(&v); err != nil {
			return c.refuse("has an invalid value in line %d", node.Line)
		}
		return v
	}
	return node.Value
}
