package narration

import (
	"context"
	"encoding/json"

	"go.temporal.io/sdk/activity"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
)

// customContentDropped is the name of the custom event about a content part that the model does not
// receive.
const customContentDropped = "perdure.contentDropped"

// maxDroppedEvents bounds these events for one model call. Further parts are only counted, in the
// worker's log.
const maxDroppedEvents = 32

// EmitDropped emits an event for each content part that the model does not receive, and a warning
// in the worker's log. Call it before the first chunk.
func (n *Narrator) EmitDropped(ctx context.Context, dropped []prompt.Dropped) error {
	if len(dropped) == 0 {
		return nil
	}
	activity.GetLogger(ctx).Warn("some content parts are not sent to the model", "dropped", len(dropped), "provider", dropped[0].Provider, "reason", dropped[0].Reason)
	var events []agui.Event
	for _, d := range dropped[:min(len(dropped), maxDroppedEvents)] {
		value, err := json.Marshal(d)
		if err != nil { // cannot be: all of it is text and numbers
			return err
		}
		events = append(events, &agui.Custom{Name: customContentDropped, Value: value})
	}
	return n.emit(ctx, events...)
}
