package view

import (
	"math"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// laneView is what a reader was shown of the unfinished attempt that holds a lane: how far, and
// which messages are open on the client. It ends with the attempt's done record, or when the
// attempt is superseded. The zero value is a lane without an attempt.
type laneView struct {
	writer       string
	from         uint64          // sequence of its attempt record
	supersededAt uint64          // sequence of the record that supersedes it; 0 = none is known
	wrote        bool            // the attempt has logged events, shown or not
	shown        stream.Position // the last event that the reader was shown; zero = none
	hidden       stream.Position // the first event that is hidden from the reader; zero = none so far
	correction   correction      // of the shown events, if they are retracted

	texts, calls, reasonings, spans []string // IDs of open messages and calls, in the order of their beginning

	scopes     []shownEvent // events of the attempt that begin or end scopes, which count when it is done
	openScopes scopes       // those that the reader was shown, if the attempt does not become done

	events []shownEvent // all shown events of the attempt, for the prelude; nil after it
}

// hide notes that an event is hidden from the reader. Only the first position counts: later events
// of the attempt are hidden as well.
func (v *laneView) hide(position stream.Position) {
	if v.hidden == (stream.Position{}) {
		v.hidden = position
	}
}

// hiddenFrom returns the position of the attempt's first hidden event; the maximum = none is
// hidden.
func (v *laneView) hiddenFrom() stream.Position {
	if v.hidden == (stream.Position{}) {
		return stream.Position{Seq: math.MaxUint64}
	}
	return v.hidden
}

// track notes which messages and scopes a shown event opens and closes, and what a retraction of it
// has to correct.
func (v *laneView) track(raw []byte, position stream.Position) error {
	kind := agui.TypeOf(raw)
	if changesScopes(raw) {
		return v.openScopes.track(raw, position)
	}
	switch kind {
	case agui.EventTextMessageContent, agui.EventToolCallArgs, agui.EventReasoningMessageContent:
		return nil // one for every token: it opens and closes nothing, so do not decode it
	case agui.EventStateSnapshot, agui.EventStateDelta:
		v.correction.needsState = true
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
		v.correction.reasoningIDs = append(v.correction.reasoningIDs, e.MessageID)
	case *agui.ActivitySnapshot:
		v.correction.addActivity(e.MessageID, e.ActivityType)
	case *agui.ReasoningMessageEnd:
		v.reasonings = without(v.reasonings, e.MessageID)
	}
	return nil
}

// without removes an ID from a list, in place.
func without(ids []string, id string) []string {
	return slices.DeleteFunc(ids, func(s string) bool { return s == id })
}

// closingEvents returns the events that end open texts, reasoning and scopes. In a retraction they
// precede the snapshot (see Projection).
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
	return append(events, v.openScopes.closingEvents(attemptEnded)...)
}

// callEnds returns the events that end open tool calls. In a retraction they follow the snapshot: a
// client would act on a truncated call that it still has.
func (v *laneView) callEnds() []agui.Event {
	var events []agui.Event
	for _, id := range v.calls {
		events = append(events, &agui.ToolCallEnd{ToolCallID: id})
	}
	return events
}
