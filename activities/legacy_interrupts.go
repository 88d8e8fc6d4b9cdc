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

// customInterrupt is the name of the custom event that stood for an interrupt before AG-UI defined
// interrupts.
const customInterrupt = "on_interrupt"

// legacyInterrupts returns such an event for each interrupt of the run's last event, if the agent's
// definition sets LegacyInterrupts; else none. The value is a JSON string that contains JSON, which
// old clients parse. end also has the interrupts as AG-UI defines them.
func (a *Activities) legacyInterrupts(ctx context.Context, in runs.FinishInput, end agui.Event) ([]agui.Event, error) {
	finished, ok := end.(*agui.RunFinished)
	if !ok || finished.Outcome == nil || len(finished.Outcome.Interrupts) == 0 {
		return nil, nil
	}
	d, err := a.Agents.Revision(ctx, in.Run.Tenant, in.Agent, in.Revision)
	// The run must end even if its definition is gone.
	if errors.Is(err, catalog.ErrUnknownRevision) {
		return nil, nil
	}
	if err != nil || !d.LegacyInterrupts {
		return nil, err
	}
	var events []agui.Event
	for _, interrupt := range finished.Outcome.Interrupts {
		text, err := json.Marshal(interrupt)
		if err != nil {
			return nil, fmt.Errorf("activities: encode question: %w", err)
		}
		// The second encoding makes a JSON string of the JSON.
		value, err := json.Marshal(string(text))
		if err != nil {
			return nil, fmt.Errorf("activities: encode question: %w", err)
		}
		events = append(events, &agui.Custom{Name: customInterrupt, Value: value})
	}
	return events, nil
}
