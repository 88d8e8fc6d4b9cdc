package narration

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// This file makes members of the state follow arguments of tool calls while the model writes them
// (state.predict), so that a client can show, for instance, a document as it grows.

// maxPredictedBytes bounds the arguments of a call, in bytes, that the state follows while they are
// written. The state gets the values of larger arguments when the call is complete.
const maxPredictedBytes = 256 << 10

// predictor has the predictions of an agent. Clients receive them in two ways that end with the
// same state: the custom event PredictState, for clients that follow the arguments themselves, and
// deltas of the state, which all clients apply.
type predictor struct {
	predictions []agents.Prediction
	isAnnounced bool
	// state is the state before the model call.
	state json.RawMessage
}

// undo returns what restores the members of the state that a call has changed; nil = none.
func (p *predictor) undo(call *toolCall) (undo []stream.Predicted) {
	var before map[string]json.RawMessage
	for _, m := range call.predicted {
		if m.last == nil {
			continue
		}
		// A state that is no object has no members.
		if before == nil && json.Unmarshal(p.state, &before) != nil {
			before = nil
		}
		undo = append(undo, stream.Predicted{Path: m.path, Digest: stream.PredictedDigest(m.last), Before: before[m.key]})
	}
	return undo
}

// prediction is one element of PredictState's value, with the names that other AG-UI frameworks
// use.
type prediction struct {
	StateKey     string `json:"state_key"`
	Tool         string `json:"tool"`
	ToolArgument string `json:"tool_argument"`
}

// pointerEscaper escapes a name in a JSON pointer (RFC 6901).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// match returns the members of the state that follow the arguments of a call, and the events that
// precede the call. A PredictState replaces an earlier one in clients, so there is one for all
// tools of the agent, before the first call that is predicted.
func (p *predictor) match(tool string) (follow []*predicted, events []agui.Event) {
	var all []prediction
	for _, d := range p.predictions {
		all = append(all, prediction{StateKey: d.Key, Tool: d.Tool, ToolArgument: d.Argument})
		if d.Tool == tool {
			follow = append(follow, &predicted{argument: d.Argument, key: d.Key, path: "/" + pointerEscaper.Replace(d.Key)})
		}
	}
	if follow == nil || p.isAnnounced {
		return follow, nil
	}
	p.isAnnounced = true
	value, err := compact(all)
	if err != nil {
		return follow, nil // texts always have a JSON form
	}
	return follow, []agui.Event{&agui.Custom{Name: "PredictState", Value: value}}
}

// follow returns deltas of the state for the arguments as far as they are written. It is called for
// each piece. Each value is at least an eighth longer than the one before, so all values of a call
// together are at most nine times as long as the last: the log does not grow with the square of the
// arguments.
func (c *toolCall) follow() []agui.Event {
	if len(c.predicted) == 0 || c.arguments.Len() < c.followed+max(1, c.followed/8) || c.arguments.Len() > maxPredictedBytes {
		return nil
	}
	c.followed = c.arguments.Len()
	return c.predictedDeltas(func(p *predicted, value json.RawMessage) bool {
		return len(value) >= p.length+max(1, p.length/8)
	})
}

// endPrediction returns deltas for the values that differ from the last ones, when the call is
// complete.
func (c *toolCall) endPrediction() []agui.Event {
	if len(c.predicted) == 0 {
		return nil
	}
	return c.predictedDeltas(func(p *predicted, value json.RawMessage) bool { return string(value) != string(p.last) })
}

// predictedDeltas returns a delta for each predicted argument whose value isDue, and notes the
// value. Values that cannot be a delta are left out: the call itself has them.
func (c *toolCall) predictedDeltas(isDue func(*predicted, json.RawMessage) bool) []agui.Event {
	var events []agui.Event
	arguments := []byte(c.arguments.String())
	for _, p := range c.predicted {
		value := argument(arguments, p.argument)
		if value == nil || !isDue(p, value) {
			continue
		}
		delta, err := compact([]map[string]any{{"op": "add", "path": p.path, "value": value}})
		if err != nil || agui.TooDeep(delta) {
			continue
		}
		p.last, p.length = value, len(value)
		events = append(events, &agui.StateDelta{Delta: delta})
	}
	return events
}
