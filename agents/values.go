package agents

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/durations"
)

// The functions of this file return reader functions of single values, see [reader].

// text reads a string.
func text(into *string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if !isText(node) {
			return "must be text, not " + describe(node)
		}
		*into = node.Value
		return ""
	}
}

// isText reports whether a node is a string. It checks the kind as well, because a file can put any
// tag on any node.
func isText(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str"
}

// texts reads a list of strings. Mistakes in entries count as mistakes of the key.
func (r *reader) texts(key string, into *[]string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		for _, entry := range node.Content {
			entry = resolve(entry)
			var s string
			if reason := text(&s)(entry); reason != "" {
				r.report(key, entry, "an entry of "+key+" "+reason)
			}
			*into = append(*into, s)
		}
		return ""
	}
}

// limits reads the key limits.
func (r *reader) limits(prefix string, into *Limits) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping(prefix+"limits.", node, []field{
			{"turns", count(&into.Turns)},
			{"tokens", count(&into.Tokens)},
			{"duration", duration(&into.Duration)},
			{"parallelTools", count(&into.ParallelTools)},
			{"wait", duration(&into.Wait)},
			{"cost", amount(&into.Cost)},
			{"soft", r.soft(prefix+softKey, &into.Soft)},
		})
		return ""
	}
}

// count reads a whole number of at least 1.
func count[N int | int64](into *N) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.ShortTag() != "!!int" {
			return "must be a whole number, not " + describe(node)
		}
		if err := node.Decode(into); err != nil {
			return "is out of range"
		}
		if *into <= 0 {
			return "must be greater than zero"
		}
		return ""
	}
}

// atLeast reads a whole number of at least minimum; unit is for the error.
func atLeast(into *int64, minimum int64, unit string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var n int64
		switch {
		case node.ShortTag() != "!!int":
			return "must be a whole number, not " + describe(node)
		case node.Decode(&n) != nil:
			return "is out of range"
		case n < minimum:
			return fmt.Sprintf("must be at least %d %s", minimum, unit)
		}
		*into = n
		return ""
	}
}

// duration reads a duration above zero (see durations.Parse).
func duration(into *time.Duration) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		const want = "must be a duration such as 90s, 15m, 2h or 3d"
		if !isText(node) {
			return want + ", not " + describe(node)
		}
		d, err := durations.Parse(node.Value)
		if err != nil {
			return fmt.Sprintf("%s, not %.80q", want, node.Value)
		}
		if d <= 0 {
			return "must be greater than zero"
		}
		*into = d
		return ""
	}
}

// describe names the type of a node for errors.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	switch node.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return "text"
	case "!!int":
		return "a number"
	case "!!float":
		return "a decimal number"
	case "!!bool":
		return "a boolean"
	case "!!timestamp":
		return "a date"
	}
	return fmt.Sprintf("%.80q", node.Tag)
}
