package view

import (
	"math"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// hide notes that the reader is not shown an event.
func (v *laneView) hide(at stream.Position) {
	if v.hidden == (stream.Position{}) {
		v.hidden = at
	}
}

// until is where the reader must have been cut before, to have been shown what it was.
func (v *laneView) until() stream.Position {
	if v.hidden == (stream.Position{}) {
		return stream.Position{Seq: math.MaxUint64}
	}
	return v.hidden
}

// said is an event of an unfinished attempt, where it stands in the log: the record, and which of its
// events.
type said struct {
	at    stream.Position
	event []byte
}

// laneView is what a reader has of the attempt that holds a lane.
type laneView struct {
	writer string
	from   uint64          // the record with which the attempt began
	died   uint64          // the record that superseded it, if that is known; 0 = it lives
	wrote  bool            // the attempt logged events, shown or not
	shown  stream.Position // of the last of them that the reader was shown; zero = none
	hidden stream.Position // of the first that it is not; zero = none so far
	taken  taken           // among those shown, what it takes more than a snapshot of messages to take back

	texts, calls, reasonings, spans []string // open, in order

	said []said // all of it, while the reader joins
}

// track follows what an event opens and closes.
func (v *laneView) track(raw []byte) error {
	kind := agui.TypeOf(raw)
	switch kind {
	case agui.EventTextMessageContent, agui.EventToolCallArgs, agui.EventReasoningMessageContent:
		return nil // the path of every token: nothing opens or closes
	case agui.EventStateSnapshot, agui.EventStateDelta:
		v.taken.state = true
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
		v.taken.reasoned = append(v.taken.reasoned, e.MessageID)
	case *agui.ActivitySnapshot:
		v.taken.activity(e.MessageID, e.ActivityType)
	case *agui.ReasoningMessageEnd:
		v.reasonings = without(v.reasonings, e.MessageID)
	}
	return nil
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(ids, func(s string) bool { return s == id })
}

// ends closes texts and reasoning: before a snapshot.
func (v *laneView) ends() []agui.Event {
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

// callEnds closes tool calls: behind a snapshot.
func (v *laneView) callEnds() []agui.Event {
	var events []agui.Event
	for _, id := range v.calls {
		events = append(events, &agui.ToolCallEnd{ToolCallID: id})
	}
	return events
}
