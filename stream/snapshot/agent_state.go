package snapshot

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/perdure/perdure/agui"
)

// Clients write the state with their inputs, and agents with STATE_DELTA events. Conditions of
// approval rules must not trust a client, which could otherwise set a member that permits a call, or
// remove one that forbids it. So the fold also keeps the state that agents alone have written. It is
// nil, and costs nothing, as long as it equals the state: a client that returns the state as it
// received it changes nothing.

// AgentState returns the state as agents and their tools have last written it, whatever clients have
// changed since. It returns nil if the rules that use the snapshot cannot trust it (ForRules).
func (s *Snapshot) AgentState() json.RawMessage {
	switch {
	case s.hidesState:
		return nil
	case s.ByAgents == nil:
		return s.State
	}
	return s.ByAgents
}

// afterInput returns the state that agents have written after an input, or another writer than an
// agent, has replaced the state before by the state after. byAgents is that before the input; nil =
// it equals before.
func afterInput(byAgents, before, after json.RawMessage) json.RawMessage {
	if byAgents == nil {
		byAgents = before
	}
	if isSameValue(byAgents, after) {
		return nil
	}
	if byAgents == nil {
		return EmptyState
	}
	return byAgents
}

// isSameValue reports whether two JSON texts have the same value.
func isSameValue(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var first, second any
	return json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil && reflect.DeepEqual(first, second)
}

// applyToAgentState is applyChanges for the state that agents have written; nil stays nil, because
// the changes have the same effect on equal states.
func applyToAgentState(byAgents json.RawMessage, changes []change, counts func(change) bool) json.RawMessage {
	if byAgents == nil {
		return nil
	}
	for _, c := range changes {
		if !counts(c) {
			continue
		}
		var delta struct {
			Type  agui.EventType    `json:"type"`
			Delta []json.RawMessage `json:"delta"`
		}
		if json.Unmarshal(c.Event, &delta) != nil || delta.Type != agui.EventStateDelta {
			continue
		}
		for _, operation := range delta.Delta {
			byAgents = applyOperation(byAgents, operation)
		}
	}
	return byAgents
}

// applyOperation applies one operation of a patch that was made for the state with the changes of
// clients. It skips one that changes a place which only a client has written. A member of the
// document that an agent replaces may be new here.
func applyOperation(byAgents, operation json.RawMessage) json.RawMessage {
	var o struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(operation, &o) != nil {
		return byAgents
	}
	if o.Op == "replace" && strings.Count(o.Path, "/") == 1 {
		operation, _ = json.Marshal(map[string]any{"op": "add", "path": o.Path, "value": o.Value}) // of decoded JSON
	}
	patch, _ := json.Marshal([]json.RawMessage{operation})
	next, err := agui.Patch(byAgents, patch)
	if err != nil {
		return byAgents
	}
	return next
}
