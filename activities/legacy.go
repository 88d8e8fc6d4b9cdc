package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
)

// customInterrupt is the name of the event for interrupts before AG-UI defined them.
const customInterrupt = "on_interrupt"

// legacyInterrupts returns the interrupts of a run as such events, if the run's agent has such
// clients. The value is a text with JSON, which those clients parse.
func (a *Activities) legacyInterrupts(ctx context.Context, in runs.Finish, end agui.Event) ([]agui.Event, error) {
	finished, ok := end.(*agui.RunFinished)
	if !ok || finished.Outcome == nil || len(finished.Outcome.Interrupts) == 0 {
		return nil, nil
	}
	d, err := a.Agents.Revision(ctx, in.Agent, in.Revision)
	if errors.Is(err, catalog.ErrUnknownRevision) { // the run must end all the same
		return nil, nil
	}
	if err != nil || !d.LegacyInterrupts {
		return nil, err
	}
	var events []agui.Event
	for _, q := range finished.Outcome.Interrupts {
		text, err := json.Marshal(q)
		if err != nil {
			return nil, fmt.Errorf("activities: encode question: %w", err)
		}
		value, err := json.Marshal(string(text))
		if err != nil {
			return nil, fmt.Errorf("activities: encode question: %w", err)
		}
		events = append(events, &agui.Custom{Name: customInterrupt, Value: value})
	}
	return events, nil
}
