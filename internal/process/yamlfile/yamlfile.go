// Package yamlfile reads YAML files of operators. Its errors name the file and the line of each
// mistake.
package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// Read returns the content of a file, which may have at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("must have at most %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// EachMember calls take for each member of a mapping, and joins the errors. A key that is repeated
// is an error. null is an empty mapping.
func EachMember(node *yaml.Node, take func(key, value *yaml.Node) error) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return LineError(node, "must be a mapping of names to values")
	}
	var all []error
	known := map[string]bool{}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if known[key.Value] {
			all = append(all, LineError(key, "%.40q is repeated", key.Value))
			continue
		}
		known[key.Value] = true
		all = append(all, take(key, value))
	}
	return errors.Join(all...)
}

// LineError returns an error that begins with the line of a node.
func LineError(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{node.Line}, args...)...)
}
