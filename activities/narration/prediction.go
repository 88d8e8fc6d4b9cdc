package narration

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
)

// maxPredicted bounds the values, in bytes, that the state follows while they are written. A larger
// value follows when it is complete.
const maxPredicted = 256 << 10

// predictor makes the state follow arguments of tool calls while the model writes them. Clients are
// told in two ways that end with the same state: by the event PredictState, for clients that follow
// the arguments themselves, and by deltas, which all clients apply.
type predictor struct {
	predictions []agents.Prediction
	announced   bool
}

// prediction is an element of PredictState's value, as other AG-UI frameworks define it.
type prediction struct {
	StateKey     string `json:"state_key"`
	Tool         string `json:"tool"`
	ToolArgument string `json:"tool_argument"`
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// begin returns the members of the state that follow the arguments of a call, and the events before
// the call. A PredictState replaces the one before it, so there is one for all tools, before the
// first call.
func (p *predictor) begin(tool string) (follow []*predicted, events []agui.Event) {
	var all []prediction
	for _, d := range p.predictions {
		all = append(all, prediction{StateKey: d.Key, Tool: d.Tool, ToolArgument: d.Argument})
		if d.Tool == tool {
			follow = append(follow, &predicted{argument: d.Argument, path: "/" + pointerEscaper.Replace(d.Key)})
		}
	}
	if follow == nil || p.announced {
		return follow, nil
	}
	p.announced = true
	value, err := compact(all)
	if err != nil {
		return follow, nil // texts always have a JSON form
	}
	return follow, []agui.Event{&agui.Custom{Name: "PredictState", Value: value}}
}

// follow emits the arguments of a call as far as they are written. Each value is at least an eighth
// longer than the one before, so all values together are at most nine times as long as the last.
func (c *toolCall) follow() []agui.Event {
	if len(c.predicted) == 0 || c.arguments.Len() < c.followed+max(1, c.followed/8) || c.arguments.Len() > maxPredicted {
		return nil
	}
	c.followed = c.arguments.Len()
	return c.tellPredicted(func(p *predicted, value json.RawMessage) bool {
		return len(value) >= p.length+max(1, p.length/8)
	})
}

// settle emits the values of a complete call.
func (c *toolCall) settle() []agui.Event {
	if len(c.predicted) == 0 {
		return nil
	}
	return c.tellPredicted(func(p *predicted, value json.RawMessage) bool { return string(value) != string(p.last) })
}

func (c *toolCall) tellPredicted(due func(*predicted, json.RawMessage) bool) []agui.Event {
	var events []agui.Event
	arguments := []byte(c.arguments.String())
	for _, p := range c.predicted {
		value := argument(arguments, p.argument)
		if value == nil || !due(p, value) {
			continue
		}
		delta, err := compact([]map[string]any{{"op": "add", "path": p.path, "value": value}})
		if err != nil || agui.TooDeep(delta) { // the call itself is told as it is
			continue
		}
		p.last, p.length = value, len(value)
		events = append(events, &agui.StateDelta{Delta: delta})
	}
	return events
}
