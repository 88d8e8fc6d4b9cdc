package agents

import (
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxPredictions = 16
	maxMember      = 128
)

// State configures how an agent uses the state that it shares with its clients (AG-UI STATE_*).
type State struct {
	// Visible adds the state to every model call.
	Visible bool `json:"visible,omitempty" yaml:"visible,omitempty"`

	// Predict changes the state with arguments of tool calls while the model streams them. At most
	// 16.
	Predict []Prediction `json:"predict,omitempty" yaml:"predict,omitempty"`
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

// mistakes returns the mistakes. Two predictions must not set the same member.
func (s State) mistakes() []mistake {
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
