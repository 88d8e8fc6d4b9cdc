package agents

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/durations"
)

// A step that waits for a time or for an event is a tool step: it calls the built-in tool wait or
// event. The keys wait and event of a file are short forms of tool and args. Unlike other tools,
// these need not be in the agent's list of tools.

// The tools that wait.
const (
	WaitTool  = "wait"
	EventTool = "event"
)

// IsWaitTool reports whether a tool waits for a time or an event.
func IsWaitTool(name string) bool { return name == WaitTool || name == EventTool }

// WaitTools returns those of the tools that wait which steps call, sorted, each once.
func (d *Definition) WaitTools() []string {
	return slices.DeleteFunc(d.StepTools(), func(name string) bool { return !IsWaitTool(name) })
}

// waitStep reads the key wait: how long or until when a step waits.
func (r *reader) waitStep(prefix string, s *Step) func(*yaml.Node) string {
	return r.shortForm(s, WaitTool, func(args map[string]any) func(*yaml.Node) string {
		return r.keyed(prefix, func() []field {
			return []field{{"for", argument(args, "for")}, {"until", argument(args, "until")}, {"timezone", argument(args, "timezone")}}
		})
	})
}

// eventStep reads the key event: the event that a step waits for.
func (r *reader) eventStep(prefix string, s *Step) func(*yaml.Node) string {
	return r.shortForm(s, EventTool, func(args map[string]any) func(*yaml.Node) string {
		match := func(node *yaml.Node) string {
			var values map[string]any
			reason := object(&values)(node)
			args["match"] = values
			return reason
		}
		return r.keyed(prefix, func() []field {
			return []field{{"name", argument(args, "name")}, {"match", match}, {"timeout", argument(args, "timeout")}}
		})
	})
}

// shortForm reads a short form of a tool step. read reads its arguments.
func (r *reader) shortForm(s *Step, tool string, read func(args map[string]any) func(*yaml.Node) string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		s.Tool, s.Args = tool, map[string]any{}
		return read(s.Args)(node)
	}
}

// reportShortForm reports keys that a short form replaces. prefix is that of the step's keys.
func (r *reader) reportShortForm(prefix string) {
	for _, form := range []string{WaitTool, EventTool} {
		if r.nodes[prefix+form] == nil {
			continue
		}
		for _, other := range []string{"tool", "args", EventTool} {
			if node := r.nodes[prefix+other]; node != nil && other != form {
				r.report(prefix+other, node, prefix+other+" and "+form+" exclude each other")
			}
		}
	}
}

// argument reads a text as an argument.
func argument(args map[string]any, name string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var value string
		reason := text(&value)(node)
		args[name] = value
		return reason
	}
}

// checkWait checks the arguments of a step that waits. Templates are checked when the step runs.
func (t *treeCheck) checkWait(at string, s *Step) {
	at += ".args"
	allowed, limit := []string{"for", "until", "timezone"}, t.d.Limits.MaxWait()
	if s.Tool == EventTool {
		allowed = []string{"name", "match", "timeout"}
	}
	for name := range s.Args {
		if !slices.Contains(allowed, name) {
			t.addMistake(at+"."+name, "is unknown: %s has %s", s.Tool, strings.Join(allowed, ", "))
		}
	}
	switch {
	case s.Tool == EventTool && s.Args["name"] == nil:
		t.addMistake(at, "needs name, the type of the event")
	case s.Tool == WaitTool && (s.Args["for"] == nil) == (s.Args["until"] == nil):
		t.addMistake(at, "needs either for or until")
	}
	if s.Args["for"] != nil && s.Args["timezone"] != nil {
		t.addMistake(at+".timezone", "is only for until")
	}
	for _, name := range waitDurations {
		text, ok := s.Args[name].(string)
		if !ok || strings.Contains(text, "${") {
			continue
		}
		switch d, err := durations.Parse(text); {
		case err != nil || d < time.Second:
			t.addMistake(at+"."+name, "must be a duration of at least a second, such as 90s, 36h or 3d, not %.40q", text)
		case d > limit:
			t.addMistake(at+"."+name, "must be at most %s (limits.wait), not %.40q", limit, text)
		}
	}
}

// canonicalArgs returns the arguments with one text for equal durations of a wait: 14d in a file is
// the same wait as 336h in Go.
func (s *Step) canonicalArgs() map[string]any {
	if !IsWaitTool(s.Tool) {
		return s.Args
	}
	args := maps.Clone(s.Args)
	for _, name := range waitDurations {
		if text, ok := args[name].(string); ok {
			args[name] = durations.Canonical(text)
		}
	}
	return args
}

// waitDurations are the arguments of steps that wait which are durations.
var waitDurations = []string{"for", "timeout"}

// WaitFor returns a step that waits for a duration.
func WaitFor(name string, d time.Duration, options ...Option) Step {
	return withOptions(Step{Name: name, Tool: WaitTool, Args: map[string]any{"for": d.String()}}, options)
}

// WaitUntil returns a step that waits until a time. until is a template: a time in RFC 3339, or one
// without an offset in an IANA time zone, such as 2026-05-04 09:00 in Europe/Berlin.
func WaitUntil(name, until, timezone string, options ...Option) Step {
	args := map[string]any{"until": until}
	if timezone != "" {
		args["timezone"] = timezone
	}
	return withOptions(Step{Name: name, Tool: WaitTool, Args: args}, options)
}

// ReceivedEvent is the output of [AwaitEvent], with the attributes of CloudEvents. T is the type of
// the data.
type ReceivedEvent[T any] struct {
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
	Data    T         `json:"data"`
}

// AwaitEvent returns a step that waits for an event by its type, whose data has the values of match by
// their path; a dot leads into an object. Texts are templates. timeout 0 = limits.wait of the agent.
func AwaitEvent[T any](name, event string, match Args, timeout time.Duration, options ...Option) StepOf[ReceivedEvent[T]] {
	args := map[string]any{"name": event}
	if len(match) > 0 {
		args["match"] = match.templates()
	}
	if timeout > 0 {
		args["timeout"] = timeout.String()
	}
	return stepOf[ReceivedEvent[T]](withOptions(Step{Name: name, Tool: EventTool, Args: args}, options))
}
