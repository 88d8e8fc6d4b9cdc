package snapshot

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/stream"
)

// RestorePredicted returns the patch that restores the members of a state that the arguments of a
// call have changed in advance (state.predict); nil = there are none. A member that has another
// value than the predicted one stays: another writer has changed it.
func (s *Snapshot) RestorePredicted(callID string, state json.RawMessage) json.RawMessage {
	for _, e := range s.Entries {
		if predicted := e.Predicted[callID]; predicted != nil {
			return restorePatch(predicted, state)
		}
	}
	return nil
}

// restoringOp is an operation of a JSON Patch (RFC 6902) that restores a member.
type restoringOp struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// restorePatch returns the patch of RestorePredicted for the predictions of a call.
func restorePatch(predicted []stream.Predicted, state json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(predicted) == 0 || json.Unmarshal(state, &members) != nil {
		return nil // a state that is no object has no members
	}
	var ops []restoringOp
	for _, p := range predicted {
		value, exists := members[pointerUnescaper.Replace(p.Path[1:])]
		switch {
		case !exists || stream.PredictedDigest(value) != p.Digest:
		case p.Before == nil:
			ops = append(ops, restoringOp{Op: "remove", Path: p.Path})
		default:
			ops = append(ops, restoringOp{Op: "add", Path: p.Path, Value: p.Before})
		}
	}
	if ops == nil {
		return nil
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil // unreachable: the values come from JSON
	}
	return patch
}

// pointerUnescaper decodes a name in a JSON pointer (RFC 6901).
var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
