package kit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
)

// ShownMessages returns the messages that a client shows at the end of a stream, if it had some
// before. The stream must be legal AG-UI and without warnings, except about the tolerated event
// types.
func ShownMessages(t *testing.T, had []Message, events []Event, tolerated ...agui.EventType) []Message {
	t.Helper()
	shown, err := Reduce(had, events, tolerated...)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// Reduce is like ShownMessages, without a test to fail.
func Reduce(had []Message, events []Event, tolerated ...agui.EventType) ([]Message, error) {
	var before []agui.Message
	for _, m := range had {
		before = append(before, agui.Message{ID: m.ID, Role: agui.Role(m.Role), Content: agui.TextContent(m.Content)})
	}
	order, reducer := new(agui.Verifier), agui.NewReducer(before, nil)
	for i, e := range events {
		decoded, err := agui.Decode(e.Data)
		if err == nil {
			err = errors.Join(order.Check(decoded), reducer.Apply(decoded))
		}
		if err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", i, e.Data, err)
		}
		if i > 0 && e.ID != "" && events[i-1].ID >= e.ID {
			return nil, fmt.Errorf("event %d has id %s after %s", i, e.ID, events[i-1].ID)
		}
	}
	for _, w := range reducer.Warnings() {
		if !slices.Contains(tolerated, w.Type) {
			return nil, fmt.Errorf("warning: %s", w)
		}
	}
	var shown []Message
	for _, m := range reducer.Messages() {
		shown = append(shown, shownMessage(m))
	}
	return shown, nil
}

// shownMessage converts a message of package agui.
func shownMessage(m agui.Message) Message {
	out := Message{ID: m.ID, Role: string(m.Role), Content: m.Content.Text(), ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, toolCall{ID: c.ID, Type: "function", Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return out
}

// WantSameEvents compares two streams, ids and bytes.
func WantSameEvents(t *testing.T, what string, want, got []Event) {
	t.Helper()
	if diff := cmp.Diff(EventLines(want), EventLines(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// EventLines returns each event as a line with its id.
func EventLines(events []Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.ID + " " + string(e.Data)
	}
	return out
}

// OfType returns a predicate for events of a type.
func OfType(eventType string) func(Event) bool {
	return func(e Event) bool { return e.Type == eventType }
}
