package snapshot

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// addPlaceholder notes where a message of a subagent begins: clients have the message there,
// although it is finished later. It does nothing if the message is known, because a message may be
// opened again.
func (f *folder) addPlaceholder(rec *stream.Record, e agui.Event) {
	var id string
	switch e := e.(type) {
	case *agui.TextMessageStart:
		id = e.MessageID
	case *agui.ReasoningMessageStart:
		id = e.MessageID
	case *agui.ToolCallStart:
		id = e.ParentMessageID
	}
	found := slices.ContainsFunc(f.snap.Pending, func(p Pending) bool { return p.Message.ID == id }) || f.indexOf(id) >= 0
	if id != "" && !found {
		f.snap.Pending = append(f.snap.Pending, Pending{At: len(f.snap.Entries), Lane: rec.Lane, Writer: rec.Writer, Message: agui.Message{ID: id}})
	}
}
