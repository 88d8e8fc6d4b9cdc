package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents/expression"
)

// Trigger starts a run of the agent for each event that it matches.
type Trigger struct {
	// Event is the type of the events.
	Event string `json:"event" yaml:"event"`

	// Match has values that the data of the event must have, by their path: the names of members,
	// joined by dots. Empty = every event of the type. At most 16, of 1 KiB as JSON each.
	Match map[string]any `json:"match,omitempty" yaml:"match,omitempty"`

	// RunAs is the subject of the configured service as which the run acts; "" = an anonymous caller.
	RunAs string `json:"runAs,omitempty" yaml:"runAs,omitempty"`

	// Thread is a template of the ID of the thread. "" = each event has a thread of its own.
	Thread string `json:"thread,omitempty" yaml:"thread,omitempty"`

	// Input is a template of the user message with which the run begins.
	Input string `json:"input" yaml:"input"`

	// OnBusy is what happens to the run if its thread has another active run: enqueue (the default),
	// interrupt or reject.
	OnBusy string `json:"onBusy,omitempty" yaml:"onBusy,omitempty"`
}

// Bounds of triggers.
const (
	maxTriggers     = 16
	maxTriggerMatch = 16
	// maxTriggerMatchValue bounds the JSON of each value in Match, in bytes. It is that of a wait
	// (tools.MaxMatchValue).
	maxTriggerMatchValue = 1 << 10
	maxTriggerInput      = 16 << 10
	maxTriggerName       = 256
	// maxTriggerText bounds the message that a template gives, and maxTriggerThread the ID of a
	// thread, in bytes.
	maxTriggerText   = 256 << 10
	maxTriggerThread = 256
)

// triggerVariable is the only variable of the templates of a trigger: the event.
const triggerVariable = "event"

// busyValues are the values of Trigger.OnBusy.
var busyValues = []string{"enqueue", "interrupt", "reject"}

// triggers reads the key triggers.
func (r *reader) triggers(into *[]Trigger) func(*yaml.Node) string {
	return r.entries("triggers", maxTriggers, func(key string, entry *yaml.Node) {
		t := Trigger{}
		r.mapping(key+".", entry, []field{
			{"event", text(&t.Event)}, {"match", object(&t.Match)}, {"runAs", text(&t.RunAs)}, {"thread", text(&t.Thread)},
			{"input", text(&t.Input)}, {"onBusy", oneOf(&t.OnBusy, busyValues...)},
		})
		*into = append(*into, t)
	})
}

// UnmarshalJSON parses the JSON of a trigger with exact numbers, and refuses unknown members.
func (t *Trigger) UnmarshalJSON(data []byte) error {
	type plain Trigger
	var in plain
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("triggers: %w", err)
	}
	*t = Trigger(in)
	t.Match = decodeExact(data, "match")
	return nil
}

// mistakes returns the mistakes of one trigger.
func (t *Trigger) mistakes(at string) []mistake {
	var found []mistake
	add := func(key, format string, args ...any) { found = append(found, newMistake(at+key, format, args...)) }
	if t.Event == "" || len(t.Event) > maxTriggerName {
		add(".event", "must be the type of the events, of 1 to %d bytes", maxTriggerName)
	}
	if len(t.Match) > maxTriggerMatch {
		add(".match", "must have at most %d members, not %d", maxTriggerMatch, len(t.Match))
	}
	for path, value := range t.Match {
		switch value.(type) {
		case map[string]any, []any:
			add(".match", "%.64q must be a text, a number, true, false or null", path)
			continue
		}
		if encoded, err := json.Marshal(value); err != nil || len(encoded) > maxTriggerMatchValue {
			add(".match", "%.64q must have at most %d bytes as JSON", path, maxTriggerMatchValue)
		}
	}
	if len(t.RunAs) > maxTriggerName {
		add(".runAs", "must be at most %d bytes", maxTriggerName)
	}
	if t.OnBusy != "" && !slices.Contains(busyValues, t.OnBusy) {
		add(".onBusy", "must be one of %s, not %.40q", strings.Join(busyValues, ", "), t.OnBusy)
	}
	if t.Input == "" {
		add(".input", "must be the message with which the run begins")
	}
	for _, template := range []struct{ key, source string }{{".thread", t.Thread}, {".input", t.Input}} {
		if len(template.source) > maxTriggerInput {
			add(template.key, "must be at most %d bytes", maxTriggerInput)
		} else if _, err := triggerScope.ParseTemplate(template.source); err != nil {
			add(template.key, "is not a valid template: %s; its variable is event", err)
		}
	}
	return found
}

var triggerScope = expression.ScopeOf(triggerVariable)

// Evaluate returns the ID of the thread and the message for an event, which is decoded JSON with exact
// numbers. thread is "" if each event has a thread of its own. The errors have no content of the event.
func (t *Trigger) Evaluate(event any) (thread, message string, err error) {
	variables := map[string]any{triggerVariable: event}
	if t.Thread != "" {
		if thread, err = evaluateTrigger("thread", t.Thread, maxTriggerThread, (*expression.Template).ID, variables); err != nil {
			return "", "", err
		}
		switch {
		case strings.TrimSpace(thread) == "":
			return "", "", fmt.Errorf("thread: the template gives an empty text")
		case thread == "null": // null as text
			return "", "", fmt.Errorf("thread: the template gives null")
		case strings.ContainsFunc(thread, isForbiddenInID):
			return "", "", fmt.Errorf("thread: the template gives a text with control characters")
		}
	}
	message, err = evaluateTrigger("input", t.Input, maxTriggerText, (*expression.Template).Text, variables)
	return thread, message, err
}

// isForbiddenInID reports whether the ID of a thread must not have a rune, as in the requests of clients. IDs
// with control characters are reserved. U+FFFD replaces invalid UTF-8.
func isForbiddenInID(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }

// evaluateTrigger returns the text of a template, of at most limit bytes.
func evaluateTrigger(
	key, source string, limit int, evaluate func(*expression.Template, map[string]any) (string, error), variables map[string]any,
) (string, error) {
	template, err := triggerScope.ParseTemplate(source)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	value, err := evaluate(template, variables)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	if len(value) > limit {
		return "", fmt.Errorf("%s: the text has more than %d bytes", key, limit)
	}
	return value, nil
}
