package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// Turn is what a dialog plays from what the user says to the end of the run.
type Turn struct {
	// When is found in what the user said last, or the turn does not fit; nil = it always does.
	When *regexp.Regexp
	// Steps are the answers, one after the other.
	Steps []Answer
}

// Answer is a text, or calls of tools. In both {name} is what the named group of When has matched,
// {tool} what a tool has answered in this turn, and {tool.member.member} a part of that, if it is
// JSON. An argument that is nothing but one such reference has its type as well. What refers to
// nothing stays.
type Answer struct {
	Say   string
	Calls []Call
}

// Call is a call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // nil = {}
}

// Dialog plays the first turn that fits what the user said last, a step for each call of the model
// since. What calls tools that this model is not offered was said by another one, and the steps
// begin behind it. It looks at nothing but the request, so that it goes on where it was in whatever
// process.
func Dialog(name string, pace time.Duration, turns ...Turn) Script {
	return Script{Name: name, Pace: pace, Play: func(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		said := strings.TrimSpace(lastUser(req).Text())
		for _, t := range turns {
			if known, fits := t.match(said); fits {
				return t.play(req, known)
			}
		}
		return Say("I am a script, and there is nothing in it about that.")
	}}
}

// match returns what the named groups have matched.
func (t Turn) match(said string) (known map[string]string, fits bool) {
	known = map[string]string{}
	if t.When == nil {
		return known, true
	}
	found := t.When.FindStringSubmatch(said)
	for i, name := range t.When.SubexpNames() {
		if name != "" && found != nil {
			known[name] = found[i]
		}
	}
	return known, found != nil
}

func (t Turn) play(req *llm.Request, known map[string]string) iter.Seq2[llm.Chunk, error] {
	step := 0
	names := map[string]string{}
	for _, message := range currentTurn(req) {
		if message.Role == llm.RoleAssistant {
			step++
		}
		for _, call := range message.ToolCalls {
			names[call.ID] = call.Name
			if !offered(req, call.Name) { // another agent's, which has handed the conversation over
				step = 0
			}
		}
		if message.Role == llm.RoleTool {
			known[names[message.ToolCallID]] = message.Text()
		}
	}
	if step >= len(t.Steps) {
		return Say("I am a script, and it is at its end.")
	}
	answer := t.Steps[step]
	if len(answer.Calls) == 0 {
		return Say(fill(answer.Say, known))
	}
	calls := make([]llm.ToolCall, len(answer.Calls))
	for i, c := range answer.Calls {
		if !offered(req, c.Tool) {
			return Say(fmt.Sprintf("I am a script, and here I would call %s, which I have not been offered.", c.Tool))
		}
		calls[i] = llm.ToolCall{Name: c.Tool, Arguments: c.arguments(known)}
	}
	return Calls(numbered(req, calls)...)
}

func (c Call) arguments(known map[string]string) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	var value any
	if err := decode(c.Arguments, &value); err != nil {
		return string(c.Arguments) // the tool will say what is wrong with it
	}
	filled, _ := json.Marshal(fillValue(value, known)) // it was JSON
	return string(filled)
}

// decode keeps numbers as they are written.
func decode(raw []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

var (
	reference = regexp.MustCompile(`\{[a-zA-Z0-9_-]+(?:\.[a-zA-Z0-9_-]+)*\}`)
	alone     = regexp.MustCompile(`^` + reference.String() + `$`)
)

func fillValue(value any, known map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = fillValue(v[key], known)
		}
	case []any:
		for i := range v {
			v[i] = fillValue(v[i], known)
		}
	case string:
		if alone.MatchString(v) {
			if found, ok := refer(v, known); ok {
				return found
			}
		}
		return fill(v, known)
	}
	return value
}

func fill(text string, known map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		value, ok := refer(ref, known)
		if !ok {
			return ref
		}
		if s, ok := value.(string); ok {
			return s
		}
		raw, _ := json.Marshal(value) // it was JSON
		return string(raw)
	})
}

// refer returns what {name} or {tool.member.member} stands for.
func refer(ref string, known map[string]string) (any, bool) {
	path := strings.Split(strings.Trim(ref, "{}"), ".")
	text, ok := known[path[0]]
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
