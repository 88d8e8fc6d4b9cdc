package agents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// InputPolicy is what clients may write with their inputs. Each member is InputAccept, InputRefuse or
// "", its default.
type InputPolicy struct {
	// Instructions are new or changed system and developer messages. Default: InputRefuse, because
	// models follow them like the agent's own instructions.
	Instructions string `json:"instructions,omitempty" yaml:"instructions,omitempty"`
	// ToolResults are results of tool calls that the thread does not have. Default: InputRefuse,
	// because models take them for what a tool has found.
	ToolResults string `json:"toolResults,omitempty" yaml:"toolResults,omitempty"`
	// Edits remove messages from the conversation, or add messages of assistants. Default:
	// InputAccept, as clients that edit and regenerate need it.
	Edits string `json:"edits,omitempty" yaml:"edits,omitempty"`
	// State is another state than that of the thread. Default: InputAccept.
	State string `json:"state,omitempty" yaml:"state,omitempty"`
}

// Values of the members of InputPolicy.
const (
	InputAccept = "accept"
	InputRefuse = "refuse"
)

var inputPolicies = []string{InputAccept, InputRefuse}

// AcceptsInstructions reports whether clients may send system and developer messages.
func (p InputPolicy) AcceptsInstructions() bool { return p.Instructions == InputAccept }

// AcceptsToolResults reports whether clients may send results of unknown tool calls.
func (p InputPolicy) AcceptsToolResults() bool { return p.ToolResults == InputAccept }

// AcceptsEdits reports whether clients may change the conversation.
func (p InputPolicy) AcceptsEdits() bool { return p.Edits != InputRefuse }

// AcceptsState reports whether clients may change the state.
func (p InputPolicy) AcceptsState() bool { return p.State != InputRefuse }

// withoutDefaults returns the policy with its defaults emptied.
func (p InputPolicy) withoutDefaults() InputPolicy {
	for member, value := range map[*string]string{&p.Instructions: InputRefuse, &p.ToolResults: InputRefuse, &p.Edits: InputAccept, &p.State: InputAccept} {
		if *member == value {
			*member = ""
		}
	}
	return p
}

// mistakes returns the mistakes in the policy.
func (p InputPolicy) mistakes() []mistake {
	var found []mistake
	for _, member := range []struct{ name, value string }{
		{"instructions", p.Instructions}, {"toolResults", p.ToolResults}, {"edits", p.Edits}, {"state", p.State},
	} {
		if member.value != "" && !slices.Contains(inputPolicies, member.value) {
			found = append(found, newMistake("input."+member.name, "must be one of %s, not %.80q", strings.Join(inputPolicies, ", "), member.value))
		}
	}
	return found
}

// input reads the key input.
func (r *reader) input(into *InputPolicy) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("input.", node, []field{
			{"instructions", oneOf(&into.Instructions, inputPolicies...)},
			{"toolResults", oneOf(&into.ToolResults, inputPolicies...)},
			{"edits", oneOf(&into.Edits, inputPolicies...)},
			{"state", oneOf(&into.State, inputPolicies...)},
		})
		return ""
	}
}
