package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/internal/exact"
	"github.com/perdure/perdure/tools"
)

// eventArguments is the type of the arguments of event.
type eventArguments struct {
	Name    string       `json:"name" jsonschema:"the type of the event, such as payment.received"`
	Match   exact.Object `json:"match,omitempty" jsonschema:"values that the data of the event must have, by the names of its members; a dot leads into an object, as in order.id"`
	Timeout string       `json:"timeout,omitempty" jsonschema:"how long to wait, such as 90m, 36h or 7d"`
}

// Event returns the tool event, with which an agent waits for an event from outside. The result is
// the event.
func Event() tools.Tool {
	return tools.Func("event", "Waits for an event from another system, and returns it.", awaitEvent, tools.Idempotent())
}

// awaitEvent waits as the arguments say. Its errors are for the model.
func awaitEvent(ctx context.Context, in eventArguments) (tools.Event, error) {
	var timeout time.Duration
	if in.Timeout != "" {
		var err error
		if timeout, err = durations.Parse(in.Timeout); err != nil {
			return tools.Event{}, fmt.Errorf("/timeout: %w", err)
		}
		if timeout < time.Second {
			return tools.Event{}, errors.New("/timeout: must be at least one second")
		}
	}
	return tools.AwaitEvent(ctx, tools.EventPattern{Name: in.Name, Match: in.Match}, timeout)
}
