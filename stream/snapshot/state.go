package snapshot

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/stream"
)

// keepsState reports whether an input has no state, so that the run begins with the thread's.
// Clients without a state send {}.
func keepsState(in *stream.Input) bool {
	state := bytes.TrimSpace(in.Input.State)
	return len(state) == 0 || bytes.Equal(state, EmptyState)
}

// stateOn returns the state that a run with an input begins with: the input's, if it has one, else
// before, the state of the thread. If both are objects, the member keeps is always that of the
// thread; "" = no member is.
func stateOn(in *stream.Input, before json.RawMessage, keeps string) json.RawMessage {
	if keepsState(in) {
		return before
	}
	var said, had map[string]json.RawMessage
	if keeps == "" || json.Unmarshal(in.Input.State, &said) != nil || said == nil || json.Unmarshal(before, &had) != nil {
		return in.Input.State // a state that is not an object has no members
	}
	if bytes.Equal(compact(said[keeps]), compact(had[keeps])) {
		return in.Input.State
	}
	if said[keeps] = had[keeps]; had[keeps] == nil {
		delete(said, keeps)
	}
	state, err := json.Marshal(said)
	if err != nil {
		return in.Input.State // unreachable: all members were decoded from JSON
	}
	return state
}

// compact returns JSON without insignificant space; nothing for nothing.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // raw is valid JSON, or empty
	return b.Bytes()
}

// StateFor returns the state for one reader, with the changes of open attempts. Keys of unshown are
// the writers whose attempts the reader is not shown.
func (r *Snapshot) StateFor(unshown map[string]uint64) json.RawMessage {
	if len(r.Journal.Changes) == 0 {
		return r.State
	}
	return applyChanges(r.Journal.Committed, r.Journal.Changes, func(c change) bool {
		_, hidden := unshown[c.Writer]
		return !hidden
	})
}

// KeepsState reports whether a run with this input begins with a state that its client does not
// know: the input has no state and the thread has one, or its member keeps differs.
func (r *Snapshot) KeepsState(in *stream.Input, keeps string) bool {
	if keepsState(in) {
		return !bytes.Equal(r.State, EmptyState)
	}
	return !bytes.Equal(stateOn(in, r.State, keeps), in.Input.State)
}

// StateWith returns the state that a run with this input begins with, if it keeps no member.
func (r *Snapshot) StateWith(in *stream.Input) json.RawMessage { return stateOn(in, r.State, "") }

// EmptyState is the state of a thread before the first change.
var EmptyState = json.RawMessage("{}")
