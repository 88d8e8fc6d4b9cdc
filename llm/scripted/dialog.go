package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// Turn is the script's part of one run: from a user message to the end of the run.
type Turn struct {
	// When must match the last user message, else the turn does not apply; nil = it always applies.
	// Its named groups are available to the answers.
	When *regexp.Regexp
	// Media is a kind of media that the last user message must have; "" = the turn applies without.
	Media llm.MediaKind
	// Steps are the answers: one per model call of the run, in order.
	Steps []Answer
}

// Answer is a text, a set of tool calls, or both, after optional reasoning.
//
// All of them can contain references. {name} is the text that the named group of When matched.
// {tool} is the result of the last call of that tool in this turn. {tool.member.member} is a part
// of a result that is JSON; an array element is referenced by its index. {media} are the media of
// the user message: {media.0.kind} and {media.0.mimeType} are those of the first one. A string
// argument that consists of one reference gets the type of the referenced JSON value. An unknown
// reference stays as it is.
type Answer struct {
	Think string // visible reasoning before the answer; "" = none
	Say   string // the text; "" = none, if there are Calls
	Calls []Call // made in parallel
}

// Call is a tool call of an [Answer].
type Call struct {
	Tool      string          // name of the tool
	Arguments json.RawMessage // nil = {}
}

// Dialog returns a script that plays the first turn that matches the last user message: one step
// for each model call since that message. After a call of a tool that the request does not offer,
// the steps start again: another agent's model made that call before a handoff.
//
// The script derives its position from the request only, so a run can continue in another process.
func Dialog(name string, pace time.Duration, turns ...Turn) Script {
	return Script{Name: name, Pace: pace, Play: func(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		for _, t := range turns {
			if values, ok := t.match(lastUser(req)); ok {
				return t.play(req, values)
			}
		}
		return Say("I am a script, and no entry of the script matches that.")
	}}
}

// match matches the message against When and Media. values contains the texts of the named groups,
// and the media; ok reports whether the turn applies.
func (t Turn) match(m llm.Message) (values map[string]string, ok bool) {
	type medium struct {
		Kind     llm.MediaKind `json:"kind"`
		MimeType string        `json:"mimeType"`
	}
	media := []medium{}
	for _, p := range m.Parts {
		if p, ok := p.(llm.Media); ok {
			media = append(media, medium{p.Kind, p.MIME})
		}
	}
	if t.Media != "" && !slices.ContainsFunc(media, func(one medium) bool { return one.Kind == t.Media }) {
		return nil, false
	}
	encoded, _ := json.Marshal(media) // cannot fail: texts
	values = map[string]string{"media": string(encoded)}
	if t.When == nil {
		return values, true
	}
	match := t.When.FindStringSubmatch(strings.TrimSpace(m.Text()))
	for i, name := range t.When.SubexpNames() {
		if name != "" && match != nil {
			values[name] = match[i]
		}
	}
	return values, match != nil
}

// play returns the next step of the turn. It counts the assistant messages since the user message,
// and adds the tool results to values.
func (t Turn) play(req *llm.Request, values map[string]string) iter.Seq2[llm.Chunk, error] {
	step := 0
	names := map[string]string{}
	for _, message := range currentTurn(req) {
		if message.Role == llm.RoleAssistant {
			step++
		}
		for _, call := range message.ToolCalls {
			names[call.ID] = call.Name
			// Another agent's model made this call before a handoff: count from here.
			if !offered(req, call.Name) {
				step = 0
			}
		}
		if message.Role == llm.RoleTool {
			values[names[message.ToolCallID]] = message.Text()
		}
	}
	if step >= len(t.Steps) {
		return Say("I am a script, and the script has ended.")
	}
	answer := t.Steps[step]
	var steps []Step
	if answer.Think != "" {
		for _, s := range SplitWords(fill(answer.Think, values)) {
			steps = append(steps, Step{Chunk: llm.ReasoningDelta{Text: s.Chunk.(llm.TextDelta).Text}})
		}
		steps = append(steps, Step{Chunk: llm.ReasoningEnd{Provider: provider}})
	}
	if answer.Say != "" {
		steps = append(steps, SplitWords(fill(answer.Say, values))...)
	}
	if len(answer.Calls) == 0 {
		return play(append(steps, Step{Chunk: llm.Finish{Reason: llm.FinishStop}}))
	}
	calls := make([]llm.ToolCall, len(answer.Calls))
	for i, c := range answer.Calls {
		if !offered(req, c.Tool) {
			return Say(fmt.Sprintf("I am a script, and would call %s here, but the agent does not have that tool.", c.Tool))
		}
		calls[i] = llm.ToolCall{Name: c.Tool, Arguments: c.arguments(values)}
	}
	return play(append(steps, callSteps(numbered(req, calls))...))
}

// arguments returns the arguments as JSON text, with references resolved. Invalid JSON is returned
// unchanged, so that a dialog can test how a tool reports it.
func (c Call) arguments(values map[string]string) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	var value any
	if err := decode(c.Arguments, &value); err != nil {
		return string(c.Arguments) // the tool reports the error
	}
	filled, _ := json.Marshal(fillValue(value, values)) // cannot fail: decoded from JSON
	return string(filled)
}

// decode decodes JSON and keeps the literals of numbers.
func decode(raw []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

var (
	reference = regexp.MustCompile(`\{[a-zA-Z0-9_-]+(?:\.[a-zA-Z0-9_-]+)*\}`)
	alone     = regexp.MustCompile(`^` + reference.String() + `$`) // a reference and nothing else
)

// fillValue resolves the references in all strings of a decoded JSON value. It modifies maps and
// arrays in place.
func fillValue(value any, values map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			member := fillValue(v[key], values)
			delete(v, key)
			v[fill(key, values)] = member
		}
	case []any:
		for i := range v {
			v[i] = fillValue(v[i], values)
		}
	case string:
		if alone.MatchString(v) {
			if resolved, ok := refer(v, values); ok {
				return resolved
			}
		}
		return fill(v, values)
	}
	return value
}

// fill resolves the references in text. A value that is no string is inserted as JSON.
func fill(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		value, ok := refer(ref, values)
		if !ok {
			return ref
		}
		if s, ok := value.(string); ok {
			return s
		}
		raw, _ := json.Marshal(value) // cannot fail: decoded from JSON
		return string(raw)
	})
}

// refer resolves a reference with its braces. It returns false if the name or a member does not
// exist.
func refer(ref string, values map[string]string) (any, bool) {
	path := strings.Split(strings.Trim(ref, "{}"), ".")
	text, ok := values[path[0]]
	if !ok || len(path) == 1 {
		return text, ok
	}
	var value any
	if err := decode([]byte(text), &value); err != nil {
		return nil, false
	}
	for _, member := range path[1:] {
		switch v := value.(type) {
		case map[string]any:
			value, ok = v[member]
		case []any:
			i, err := strconv.Atoi(member)
			if ok = err == nil && i >= 0 && i < len(v); ok {
				value = v[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return value, true
}
