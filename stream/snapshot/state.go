package snapshot

import (
	"bytes"
	"encoding/json"

	"github.com/perdure/perdure/stream"
)

// lacksState reports whether an input has no state, so that the run begins with the thread's.
// Clients without a state send {}.
func lacksState(in *stream.Input) bool {
	state := bytes.TrimSpace(in.Input.State)
	return len(state) == 0 || bytes.Equal(state, EmptyState)
}

// initialState returns the state that a run with an input begins with: the input's, if it has one,
// else threadState, the state of the thread. If both are objects, the member keptMember is always
// that of the thread; "" = no member is.
func initialState(in *stream.Input, threadState json.RawMessage, keptMember string) json.RawMessage {
	if lacksState(in) {
		return threadState
	}
	var inputMembers, threadMembers map[string]json.RawMessage
	if keptMember == "" || json.Unmarshal(in.Input.State, &inputMembers) != nil || inputMembers == nil || json.Unmarshal(threadState, &threadMembers) != nil {
		return in.Input.State // a state that is not an object has no members
	}
	if bytes.Equal(compact(inputMembers[keptMember]), compact(threadMembers[keptMember])) {
		return in.Input.State
	}
	if inputMembers[keptMember] = threadMembers[keptMember]; threadMembers[keptMember] == nil {
		delete(inputMembers, keptMember)
	}
	state, err := json.Marshal(inputMembers)
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
func (s *Snapshot) StateFor(unshown map[string]uint64) json.RawMessage {
	if len(s.Journal.Changes) == 0 {
		return s.State
	}
	return applyChanges(s.Journal.Committed, s.Journal.Changes, func(c change) bool {
		_, hidden := unshown[c.Writer]
		return !hidden
	})
}

// KeepsState reports whether a run with this input begins with a state that its client does not
// know: the input has no state and the thread has one, or its member keptMember differs.
func (s *Snapshot) KeepsState(in *stream.Input, keptMember string) bool {
	if lacksState(in) {
		return !bytes.Equal(s.State, EmptyState)
	}
	return !bytes.Equal(initialState(in, s.State, keptMember), in.Input.State)
}

// StateWith returns the state that a run with this input begins with, if it keeps no member.
func (s *Snapshot) StateWith(in *stream.Input) json.RawMessage { return initialState(in, s.State, "") }

// EmptyState is the state of a thread before the first change.
var EmptyState = json.RawMessage("{}")
