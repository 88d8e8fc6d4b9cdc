package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns a valid definition as a file, in one form for one meaning, as in [Encode]. Diffs of
// revisions compare these files. Parse returns a definition of the same revision.
func (d *Definition) YAML() ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(jsonToYAML(canonical(d)), &root); err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	restyle(&root)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	return b.Bytes(), encoder.Close()
}

// restyle sets the styles that authors use: block mappings, and block scalars. Strings that begin
// with white space stay quoted, because a block scalar would lose the indentation.
func restyle(node *yaml.Node) {
	if node.Kind != yaml.ScalarNode || strings.TrimLeft(node.Value, " \t\n") == node.Value {
		node.Style = 0
	}
	for _, child := range node.Content {
		restyle(child)
	}
}

// ParseJSON is Parse for a definition in JSON.
func ParseJSON(filename string, data []byte) (*Definition, error) {
	return Parse(filename, jsonToYAML(data))
}

// ParseLocatedJSON is ParseLocated for a definition in JSON.
func ParseLocatedJSON(filename string, data []byte) (*Located, error) {
	return ParseLocated(filename, jsonToYAML(data))
}

// jsonToYAML converts JSON to YAML without changing its lines. JSON is YAML except for escaped
// slashes, surrogate pairs, and characters that YAML forbids or reads as line breaks.
func jsonToYAML(data []byte) []byte { return nonYAML.ReplaceAllFunc(data, yamlForm) }

// nonYAML matches what jsonToYAML has to convert. It also matches every other escape, so that the
// second of two backslashes is not taken for the beginning of an escape.
var nonYAML = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)|[\x7f-\x{9f}\x{2028}\x{2029}\x{feff}\x{fffe}\x{ffff}]`)

// yamlForm returns the YAML form of a match of nonYAML.
func yamlForm(match []byte) []byte {
	char := string(match)
	if match[0] != '\\' {
		return fmt.Appendf(nil, `\u%04x`, []rune(char)[0])
	}
	if char != `\/` && len(char) < len(`\ud83d\ude00`) || json.Unmarshal([]byte(`"`+char+`"`), &char) != nil {
		return match
	}
	return []byte(char)
}
