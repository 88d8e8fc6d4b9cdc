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

// customToolsIgnored is the name of the custom event about the client's tools that the agent does
// not allow. Its value has tools and reason.
const customToolsIgnored = "perdure.clientToolsIgnored"

// maxIgnoredNames bounds the names in that event.
const maxIgnoredNames = 32

// EmitIgnoredTools emits an event with the names of client tools that the model does not receive,
// and a warning in the worker's log. Call it before the first chunk.
func (n *Narrator) EmitIgnoredTools(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	activity.GetLogger(ctx).Warn("the agent does not allow tools of the client", "ignored", len(names))
	value, err := json.Marshal(map[string]any{
		"tools": names[:min(len(names), maxIgnoredNames)], "reason": "the agent allows no tools of the client: add client:* to its tools",
	})
	if err != nil { // cannot be: all of it is text
		return err
	}
	return n.emit(ctx, &agui.Custom{Name: customToolsIgnored, Value: value})
}

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
