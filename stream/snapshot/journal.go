package snapshot

import (
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// What attempts in parallel lanes change together, the state and the list of messages, readers are
// shown in the order of the log, while reduction counts a step only when it is finished. So what an
// open attempt changed is kept where it stands in that order: it is settled there when the attempt
// finishes, and taken out when the attempt dies.

// journal is the state as the log tells it: what is settled, and the changes from the first one of
// an open attempt on.
type journal struct {
	// Settled is the state before the first change.
	Settled json.RawMessage `json:"settled,omitempty"`
	Changes []change        `json:"changes,omitempty"`
}

// change is a STATE_DELTA or STATE_SNAPSHOT. Lane and writer are those of the attempt while it is
// open, and empty once it has finished.
type change struct {
	Lane   stream.Lane     `json:"lane,omitempty"`
	Writer string          `json:"writer,omitempty"`
	Event  json.RawMessage `json:"event"`
}

func (c change) open() bool { return c.Writer != "" }

// finish settles what the attempt on a lane changed.
func (j *journal) finish(lane stream.Lane) {
	for i := range j.Changes {
		if j.Changes[i].Lane == lane {
			j.Changes[i].Lane, j.Changes[i].Writer = "", ""
		}
	}
	j.settle()
}

// drop takes out what the open attempts in some lanes changed.
func (j *journal) drop(in func(stream.Lane) bool) {
	j.Changes = slices.DeleteFunc(j.Changes, func(c change) bool { return c.open() && in(c.Lane) })
	j.settle()
}

// settle applies the changes that no open attempt stands before.
func (j *journal) settle() {
	n := slices.IndexFunc(j.Changes, change.open)
	if n < 0 {
		n = len(j.Changes)
	}
	j.Settled = applyChanges(j.Settled, j.Changes[:n], change.finished)
	j.Changes = j.Changes[n:]
}

func (c change) finished() bool { return !c.open() }

// applyChanges returns the state behind those changes that count. It is done by what clients do, so
// that both agree on what does not apply and is skipped.
func applyChanges(state json.RawMessage, changes []change, counts func(change) bool) json.RawMessage {
	client := agui.NewReducer(nil, state)
	applied := false
	for _, c := range changes {
		if !counts(c) {
			continue
		}
		if e, err := agui.Decode(c.Event); err == nil {
			_ = client.Apply(e) // what is malformed is skipped like what does not apply
			applied = true
		}
	}
	if !applied {
		return state
	}
	return client.State()
}

// Pending is an activity of an attempt that is still open. It is no part of the conversation yet,
// but readers have it, at its place. Of what a subagent says it is the place alone.
type Pending struct {
	// At is how many entries of the conversation stand before it.
	At      int          `json:"at"`
	Lane    stream.Lane  `json:"lane"`
	Writer  string       `json:"writer"`
	Message agui.Message `json:"message"`
}

// isPlace tells whether a message, or what stands for it, says only where it is to be: it has no role.
func isPlace(m agui.Message) bool { return m.Role == "" }

// keepPlace notes where a message of a subagent begins, unless it is there: a message may be opened again.
func (f *fold) keepPlace(rec *stream.Record, e agui.Event) {
	var id string
	switch e := e.(type) {
	case *agui.TextMessageStart:
		id = e.MessageID
	case *agui.ReasoningMessageStart:
		id = e.MessageID
	case *agui.ToolCallStart:
		id = e.ParentMessageID
	}
	known := slices.ContainsFunc(f.r.Pending, func(p Pending) bool { return p.Message.ID == id }) || f.find(id) >= 0
	if id != "" && !known {
		f.r.Pending = append(f.r.Pending, Pending{At: len(f.r.Entries), Lane: rec.Lane, Writer: rec.Writer, Message: agui.Message{ID: id}})
	}
}

// notice applies an activity event to the pending activities. Who begins an activity owns it: its id
// derives from one call, and no other may change it.
func notice(pending []Pending, end int, rec *stream.Record, e agui.Event) []Pending {
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
	_ = client.Apply(e) // what is malformed is skipped
	after := client.Messages()
	switch {
	case len(after) == 0: // a change of what is not there
	case i >= 0:
		pending[i].Message = after[0]
	default:
		pending = append(pending, Pending{At: end, Lane: rec.Lane, Writer: rec.Writer, Message: after[0]})
	}
	return pending
}
