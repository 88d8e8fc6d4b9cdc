package snapshot

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/stream"
)

// keepsState reports whether an input leaves the state to the thread. Clients without a state send
// {}.
func keepsState(in *stream.Input) bool {
	state := bytes.TrimSpace(in.Input.State)
	return len(state) == 0 || bytes.Equal(state, EmptyState)
}

// stateOn returns the state that a run with an input begins with. before is the state of the
// thread; the member keeps of it stays as the thread has it, whatever the input says ("" = none
// does).
func stateOn(in *stream.Input, before json.RawMessage, keeps string) json.RawMessage {
	if keepsState(in) {
		return before
	}
	var said, had map[string]json.RawMessage
	if keeps == "" || json.Unmarshal(in.Input.State, &said) != nil || said == nil || json.Unmarshal(before, &had) != nil {
		return in.Input.State // what is no object has no such member
	}
	if bytes.Equal(compact(said[keeps]), compact(had[keeps])) {
		return in.Input.State
	}
	if said[keeps] = had[keeps]; had[keeps] == nil {
		delete(said, keeps)
	}
	state, err := json.Marshal(said)
	if err != nil {
		return in.Input.State // cannot be: all of it was read
	}
	return state
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it was read; of nothing it is nothing
	return b.Bytes()
}

// StateFor returns the state of a reader, with the changes of open attempts. unshown are the
// writers whose attempts the reader is not shown.
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

// StateWith returns the state that a run with this input begins with.
func (r *Snapshot) StateWith(in *stream.Input) json.RawMessage { return stateOn(in, r.State, "") }

// EmptyState is the state of a thread before the first change.
var EmptyState = json.RawMessage("{}")
