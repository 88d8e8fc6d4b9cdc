package view

import (
	"math"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// hide notes that an event is hidden from the reader.
func (v *laneView) hide(at stream.Position) {
	if v.hidden == (stream.Position{}) {
		v.hidden = at
	}
}

// hiddenFrom returns the first position at which the reader would have seen more of the attempt
// than it did.
func (v *laneView) hiddenFrom() stream.Position {
	if v.hidden == (stream.Position{}) {
		return stream.Position{Seq: math.MaxUint64}
	}
	return v.hidden
}

// heldEvent is an event of an open attempt, and its position in the log.
type heldEvent struct {
	at    stream.Position
	event []byte
}

// laneView is what a reader has of the attempt that holds a lane.
type laneView struct {
	writer       string
	from         uint64          // the record with which the attempt began
	supersededAt uint64          // the record that supersedes it; 0 = none that is known
	wrote        bool            // the attempt has logged events, shown or not
	shown        stream.Position // the last event that the reader was shown; zero = none
	hidden       stream.Position // the first event that is hidden from the reader; zero = none so far
	residue      residue         // of the shown events

	texts, calls, reasonings, spans []string // open IDs, in order

	said []heldEvent // all events of the attempt, while the reader joins
}

// track notes what an event opens and closes.
func (v *laneView) track(raw []byte) error {
	kind := agui.TypeOf(raw)
	switch kind {
	case agui.EventTextMessageContent, agui.EventToolCallArgs, agui.EventReasoningMessageContent:
		return nil // the path of every token: nothing opens or closes
	case agui.EventStateSnapshot, agui.EventStateDelta:
		v.residue.state = true
		return nil
	}
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case *agui.TextMessageStart:
		v.texts = append(v.texts, e.MessageID)
	case *agui.TextMessageEnd:
		v.texts = without(v.texts, e.MessageID)
	case *agui.ToolCallStart:
		v.calls = append(v.calls, e.ToolCallID)
	case *agui.ToolCallEnd:
		v.calls = without(v.calls, e.ToolCallID)
	case *agui.ReasoningStart:
		v.spans = append(v.spans, e.MessageID)
	case *agui.ReasoningEnd:
		v.spans = without(v.spans, e.MessageID)
	case *agui.ReasoningMessageStart:
		v.reasonings = append(v.reasonings, e.MessageID)
		v.residue.reasoned = append(v.residue.reasoned, e.MessageID)
	case *agui.ActivitySnapshot:
		v.residue.activity(e.MessageID, e.ActivityType)
	case *agui.ReasoningMessageEnd:
		v.reasonings = without(v.reasonings, e.MessageID)
	}
	return nil
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(ids, func(s string) bool { return s == id })
}

// closingEvents returns the events that close texts and reasoning. They precede a snapshot.
func (v *laneView) closingEvents() []agui.Event {
	var events []agui.Event
	for _, id := range v.texts {
		events = append(events, &agui.TextMessageEnd{MessageID: id})
	}
	for _, id := range v.reasonings {
		events = append(events, &agui.ReasoningMessageEnd{MessageID: id})
	}
	for _, id := range v.spans {
		events = append(events, &agui.ReasoningEnd{MessageID: id})
	}
	return events
}

// callEnds returns the events that close tool calls. They follow a snapshot.
func (v *laneView) callEnds() []agui.Event {
	var events []agui.Event
	for _, id := range v.calls {
		events = append(events, &agui.ToolCallEnd{ToolCallID: id})
	}
	return events
}
