package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents/expression"
)

const (
	maxPredictions = 16
	maxMappings    = 32
	maxWrites      = 16
	maxMember      = 128
)

// State configures how an agent uses the state that it shares with its clients (AG-UI STATE_*).
type State struct {
	// Visible adds the state to every model call.
	Visible bool `json:"visible,omitempty" yaml:"visible,omitempty"`

	// Predict changes the state with arguments of tool calls while the model streams them. At most
	// 16.
	Predict []Prediction `json:"predict,omitempty" yaml:"predict,omitempty"`
	// Results changes the state with results of tools. At most 32, each tool once.
	Results []ResultMapping `json:"results,omitempty" yaml:"results,omitempty"`
	// Write are the places of the state that the model may change with the tool [StateTool], which
	// it has only if there are any. At most 16.
	Write []StateWrite `json:"write,omitempty" yaml:"write,omitempty"`
}

// isZero reports whether the definition says nothing about the state.
func (s State) isZero() bool {
	return !s.Visible && len(s.Predict) == 0 && len(s.Results) == 0 && len(s.Write) == 0
}

// StateTool is the name of the tool with which a model changes the state.
const StateTool = "update_state"

// ResultMapping changes the state with the result of each successful call of a tool.
type ResultMapping struct {
	// Tool is the tool's name for models.
	Tool string `json:"tool" yaml:"tool"`
	// Set are the operations, as in a set step. Paths and texts are templates with the variables
	// result, args and state. Either all operations take effect, or none.
	Set []Op `json:"set" yaml:"set"`
}

// resultVariables are the variables of a [ResultMapping].
var resultVariables = []string{"args", "result", "state"}

// ResultScope returns the variables of the expressions in a [ResultMapping].
func ResultScope() expression.Scope { return expression.ScopeOf(resultVariables...) }

// StateWrite is a place of the state that the model may change.
type StateWrite struct {
	// Path is a JSON pointer; /- at its end appends to a list.
	Path string `json:"path" yaml:"path"`
	// Argument is the argument of the tool with the value: [a-zA-Z0-9_-]{1,64}. Empty = the last
	// name of Path.
	Argument string `json:"argument,omitempty" yaml:"argument,omitempty"`
	// Schema is the JSON Schema of the value; empty = any value.
	Schema json.RawMessage `json:"schema,omitempty" yaml:"schema,omitempty"`
}

// ArgumentName returns Argument, or its default.
func (w StateWrite) ArgumentName() string {
	if w.Argument != "" {
		return w.Argument
	}
	path := strings.TrimSuffix(w.Path, "/-")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Changes returns the operations that apply to the state after a successful call of a tool; nil =
// none. argument reports whether the call has an argument.
func (s State) Changes(tool string, argument func(name string) bool) []Op {
	for _, m := range s.Results {
		if m.Tool == tool {
			return m.Set
		}
	}
	if tool != StateTool {
		return nil
	}
	var ops []Op
	for _, w := range s.Write {
		if name := w.ArgumentName(); argument(name) {
			ops = append(ops, Op{Path: w.Path, Value: fmt.Sprintf("${args[%q]}", name)})
		}
	}
	return ops
}

// ChangedBy reports whether the results of a tool change the state.
func (s State) ChangedBy(tool string) bool {
	return slices.ContainsFunc(s.Results, func(m ResultMapping) bool { return m.Tool == tool })
}

// Prediction sets a member of the state to an argument of a tool call, as far as it was streamed.
type Prediction struct {
	// Tool is the tool's name.
	Tool string `json:"tool" yaml:"tool"`

	// Argument is the name of the argument, and Key that of the state's member, each 1 to 128
	// bytes.
	Argument string `json:"argument" yaml:"argument"`
	Key      string `json:"key" yaml:"key"`
}

// state reads the key state.
func (r *reader) state(prefix string, into *State) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping(prefix+"state.", node, []field{
			{"visible", flag(&into.Visible)},
			{"predict", r.predictions(prefix, &into.Predict)},
			{"results", r.resultMappings(prefix, &into.Results)},
			{"write", r.stateWrites(prefix, &into.Write)},
		})
		return ""
	}
}

// predictions reads the key state.predict.
func (r *reader) predictions(prefix string, into *[]Prediction) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		for i, entry := range node.Content {
			key := prefix + predictionKey(i)
			entry = resolve(entry)
			var p Prediction
			if entry.Kind == yaml.MappingNode {
				r.mapping(key+".", entry, []field{{"tool", text(&p.Tool)}, {"argument", text(&p.Argument)}, {"key", text(&p.Key)}})
			} else {
				r.report(prefix+"state.predict", entry, key+" must have keys, not be "+describe(entry))
			}
			*into = append(*into, p)
		}
		return ""
	}
}

// resultMappings reads the key state.results.
func (r *reader) resultMappings(prefix string, into *[]ResultMapping) func(*yaml.Node) string {
	return r.entries(prefix+"state.results", maxMappings, func(key string, entry *yaml.Node) {
		r.nodes[key] = entry
		var m ResultMapping
		r.mapping(key+".", entry, []field{{"tool", text(&m.Tool)}, {"set", r.ops(key+".set", &m.Set)}})
		*into = append(*into, m)
	})
}

// stateWrites reads the key state.write.
func (r *reader) stateWrites(prefix string, into *[]StateWrite) func(*yaml.Node) string {
	return r.entries(prefix+"state.write", maxWrites, func(key string, entry *yaml.Node) {
		r.nodes[key] = entry
		var w StateWrite
		r.mapping(key+".", entry, []field{{"path", text(&w.Path)}, {"argument", text(&w.Argument)}, {"schema", schema(&w.Schema)}})
		*into = append(*into, w)
	})
}

// predictionKey returns the path of a prediction.
func predictionKey(i int) string { return fmt.Sprintf("state.predict[%d]", i) }

// flag reads a boolean.
func flag(into *bool) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!bool" {
			return "must be true or false, not " + describe(node)
		}
		if err := node.Decode(into); err != nil {
			return "must be true or false"
		}
		return ""
	}
}

// mistakes returns the mistakes. patterns are the tools of the agents whose state it is.
func (s State) mistakes(patterns []string) []mistake {
	found := s.predictionMistakes()
	found = append(found, s.resultMistakes(patterns)...)
	return append(found, s.writeMistakes(patterns)...)
}

// predictionMistakes returns the mistakes in Predict. Two predictions must not set the same member.
func (s State) predictionMistakes() []mistake {
	if len(s.Predict) > maxPredictions {
		return []mistake{newMistake("state.predict", "must be at most %d, not %d", maxPredictions, len(s.Predict))}
	}
	var found []mistake
	keys := map[string]int{}
	for i, p := range s.Predict {
		at := predictionKey(i)
		if !toolName.MatchString(p.Tool) {
			found = append(found, newMistake(at+".tool", "%.80q must be the name of a tool", p.Tool))
		}
		found = append(found, checkMember(at+".argument", p.Argument)...)
		found = append(found, checkMember(at+".key", p.Key)...)
		if p.Key == Outputs {
			found = append(found, newMistake(at+".key", "must not be %s, which has the outputs of steps", Outputs))
		}
		if first, twice := keys[p.Key]; twice {
			found = append(found, newMistake(at+".key", "%.80q is already the key of %s", p.Key, predictionKey(first)))
		}
		keys[p.Key] = i
	}
	return found
}

// checkMember checks the name of an argument or of a member.
func checkMember(key, name string) []mistake {
	if name == "" || len(name) > maxMember || !utf8.ValidString(name) {
		return []mistake{newMistake(key, "must have 1 to %d bytes of UTF-8", maxMember)}
	}
	return nil
}
