package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	maxTurns       = 100
	maxSteps       = 32
	maxScriptCalls = 32
	maxPattern     = 1 << 10
	maxPace        = 10 * time.Second
)

// Script is a document of kind script: the answers of the model scripted/name, for demonstrations
// and tests without a model.
type Script struct {
	// Name is the model's name after "scripted/": [a-zA-Z0-9_-]{1,64}.
	Name string `yaml:"name"`

	// Pace is the pause before each chunk of an answer, at most 10s; nil = 25ms.
	Pace *time.Duration `yaml:"pace"`

	// Turns are the possible inputs, 1 to 100. The first that matches is played.
	Turns []ScriptTurn `yaml:"turns"`

	Position SourcePosition `yaml:"-"`
}

// ScriptTurn is the model's answers in one run, for the inputs that it matches.
type ScriptTurn struct {
	// When must match the user's last message; nil = every message. The text of a named group
	// replaces {name} in the steps.
	When *regexp.Regexp `yaml:"when"`

	// Media is the kind of media that the user's last message must have: image, audio, video or
	// document; "" = the turn applies without.
	Media string `yaml:"media"`

	// Steps are the model's answers in order, 1 to 32.
	Steps []ScriptStep `yaml:"steps"`
}

// ScriptStep is one answer of the model: a text, tool calls, or both. {name} stands for the text of
// a named group of When, and {tool} or {tool.member.member} for the result of a tool in this turn,
// in all texts. {media.0.mimeType} is the media type of the first medium of the user's message.
type ScriptStep struct {
	// Think is the reasoning before the answer; "" = none.
	Think string       `yaml:"think"`
	Say   string       `yaml:"say"`
	Calls []ScriptCall `yaml:"calls"` // at most 32
}

// ScriptCall is a tool call. Texts in Arguments, and the names of their members, have references as
// in a ScriptStep.
type ScriptCall struct {
	Tool      string          `yaml:"tool"`
	Arguments json.RawMessage `yaml:"arguments"` // a JSON object; nil = {}
}

// script reads a document of kind script.
func (r *reader) script(root *yaml.Node) *Script {
	s := &Script{Position: SourcePosition{File: r.file, Line: root.Line, keys: r.nodes}}
	r.mapping("", root, []field{
		{"kind", r.kind(kindScript)},
		{"name", match(&s.Name, toolName, "must be 1 to 64 letters, digits, _ and -")},
		{"pace", pace(&s.Pace)},
		{"turns", r.entries("turns", maxTurns, func(key string, entry *yaml.Node) {
			s.Turns = append(s.Turns, r.scriptTurn(key, entry))
		})},
	})
	r.require(root, "name", "turns")
	return s
}

// pace reads a duration of 0s to maxPace.
func pace(into **time.Duration) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		d, err := time.ParseDuration(node.Value)
		if !isText(node) || err != nil || d < 0 || d > maxPace {
			return fmt.Sprintf("must be a duration of 0s to %s, such as 100ms", maxPace)
		}
		*into = &d
		return ""
	}
}

// scriptTurn reads one turn.
func (r *reader) scriptTurn(key string, entry *yaml.Node) (t ScriptTurn) {
	r.mapping(key+".", entry, []field{
		{"when", pattern(&t.When)},
		{"media", oneOf(&t.Media, "image", "audio", "video", "document")},
		{"steps", r.entries(key+".steps", maxSteps, func(key string, entry *yaml.Node) {
			t.Steps = append(t.Steps, r.scriptStep(key, entry))
		})},
	})
	r.require(entry, key+".steps")
	return t
}

// scriptStep reads one answer: say, calls, or both.
func (r *reader) scriptStep(key string, entry *yaml.Node) (s ScriptStep) {
	r.mapping(key+".", entry, []field{
		{"think", text(&s.Think)},
		{"say", text(&s.Say)},
		{"calls", r.entries(key+".calls", maxScriptCalls, func(key string, entry *yaml.Node) {
			var c ScriptCall
			r.mapping(key+".", entry, []field{
				{"tool", match(&c.Tool, toolName, "must be 1 to 64 letters, digits, _ and -")},
				{"arguments", schema(&c.Arguments)},
			})
			r.require(entry, key+".tool")
			s.Calls = append(s.Calls, c)
		})},
	})
	if r.nodes[key+".say"] == nil && r.nodes[key+".calls"] == nil {
		r.report(key, entry, key+" must have say or calls")
	}
	return s
}

// entries reads a list of 1 to limit mappings, and calls read for each with its path.
func (r *reader) entries(key string, limit int, read func(key string, entry *yaml.Node)) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		if n := len(node.Content); n == 0 || n > limit {
			return fmt.Sprintf("must be 1 to %d entries, not %d", limit, n)
		}
		for i, entry := range node.Content {
			entry = resolve(entry)
			entryKey := fmt.Sprintf("%s[%d]", key, i)
			if entry.Kind != yaml.MappingNode {
				r.report(entryKey, entry, entryKey+" must have keys, not be "+describe(entry))
				continue
			}
			read(entryKey, entry)
		}
		return ""
	}
}

// pattern reads a regular expression in Go's syntax.
func pattern(into **regexp.Regexp) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var s string
		if problem := text(&s)(node); problem != "" {
			return problem
		}
		if len(s) > maxPattern {
			return fmt.Sprintf("must be at most %d bytes", maxPattern)
		}
		compiled, err := regexp.Compile(s)
		if err != nil {
			return "must be a regular expression: " + err.Error()
		}
		*into = compiled
		return ""
	}
}
