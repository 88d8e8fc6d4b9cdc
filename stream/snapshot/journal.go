package snapshot

import (
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Attempts on parallel lanes change the state and the list of messages concurrently. Readers see
// their changes in the order of the log, but a step counts only when it is finished. So the changes
// of an open attempt are kept at their place in that order: they are committed there when the
// attempt finishes, and dropped if it is superseded. A change that is committed may have open ones
// before it; then it stays in the journal until those are committed or dropped.

// journal is the committed state, and the changes from the first one of an open attempt on. The
// zero value has no changes; the committed state is Snapshot.State then.
type journal struct {
	// Committed is the state before the first of the changes.
	Committed json.RawMessage `json:"committed,omitempty"`
	// ByAgents is the part of Committed that agents have written; nil = all of it.
	ByAgents json.RawMessage `json:"byAgents,omitempty"`
	// Changes are open and committed ones, in the order of the log. The first one is open.
	Changes []change `json:"changes,omitempty"`
}

// change is a STATE_DELTA or STATE_SNAPSHOT. Lane and Writer are those of its attempt while that is
// open, and empty afterwards.
type change struct {
	Lane   stream.Lane     `json:"lane,omitempty"`
	Writer string          `json:"writer,omitempty"`
	Event  json.RawMessage `json:"event"`
}

// isOpen reports whether the attempt of the change has not finished yet.
func (c change) isOpen() bool { return c.Writer != "" }

// commit commits the changes of the open attempt on a lane.
func (j *journal) commit(lane stream.Lane) {
	for i := range j.Changes {
		if j.Changes[i].Lane == lane {
			j.Changes[i].Lane, j.Changes[i].Writer = "", ""
		}
	}
	j.foldCommitted()
}

// drop removes the changes of the open attempts on some lanes.
func (j *journal) drop(in func(stream.Lane) bool) {
	j.Changes = slices.DeleteFunc(j.Changes, func(c change) bool { return c.isOpen() && in(c.Lane) })
	j.foldCommitted()
}

// foldCommitted applies the committed changes before the first open one to Committed, and removes
// them.
func (j *journal) foldCommitted() {
	n := slices.IndexFunc(j.Changes, change.isOpen)
	if n < 0 {
		n = len(j.Changes)
	}
	j.Committed = applyChanges(j.Committed, j.Changes[:n], change.isCommitted)
	j.ByAgents = applyToAgentState(j.ByAgents, j.Changes[:n], change.isCommitted)
	j.Changes = j.Changes[n:]
}

// isCommitted reports whether the change is committed.
func (c change) isCommitted() bool { return !c.isOpen() }

// applyChanges returns the state after the changes that count. It uses the reducer that clients
// use, so both skip the same changes.
func applyChanges(state json.RawMessage, changes []change, counts func(change) bool) json.RawMessage {
	client := agui.NewReducer(nil, state)
	applied := false
	for _, c := range changes {
		if !counts(c) {
			continue
		}
		if e, err := agui.Decode(c.Event); err == nil {
			_ = client.Apply(e) // clients skip a malformed change, and one that does not apply, in the same way
			applied = true
		}
	}
	if !applied {
		return state
	}
	return client.State()
}

// applyActivity applies an activity event to the pending activities. The lane that begins an
// activity owns it: its ID derives from one tool call, and no other lane may change it.
func applyActivity(pending []Pending, end int, rec *stream.Record, e agui.Event) []Pending {
	var id string
	switch e := e.(type) {
	case *agui.ActivitySnapshot:
		id = e.MessageID
	case *agui.ActivityDelta:
		id = e.MessageID
	}
	i := slices.IndexFunc(pending, func(p Pending) bool { return p.Message.ID == id && p.Lane == rec.Lane })
	var before []agui.Message
	if i >= 0 {
		before = []agui.Message{pending[i].Message}
	}
	client := agui.NewReducer(before, nil)
	_ = client.Apply(e) // a malformed change is skipped
	after := client.Messages()
	switch {
	case len(after) == 0: // a delta without the activity that it changes
	case i >= 0:
		pending[i].Message = after[0]
	default:
		pending = append(pending, Pending{At: end, Lane: rec.Lane, Writer: rec.Writer, Message: after[0]})
	}
	return pending
}
