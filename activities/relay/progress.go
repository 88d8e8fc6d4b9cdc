package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/perdure/perdure/agui"
)

// Progress is how far a relay has come: what the relay of the next attempt needs to continue a run from
// an event on. It is stored as JSON.
type Progress struct {
	// LastEventID is the SSE ID of the last event that was relayed (remote.Event.ID).
	LastEventID string `json:"lastEventId"`
	// Emitted is how many events the attempt had emitted by then.
	Emitted int `json:"emitted"`
	// Changed are the IDs of ChangedIDs by then.
	Changed map[string]string `json:"changed,omitempty"`
	// Lifecycle are the events of the run's lifecycle by then, which are not emitted.
	Lifecycle []json.RawMessage `json:"asking,omitempty"`
}

// Progress returns the progress of the relay after an event with an SSE ID.
func (r *Relay) Progress(lastEventID string) (Progress, error) {
	p := Progress{LastEventID: lastEventID, Emitted: r.emitted, Changed: maps.Clone(r.changed)}
	for _, e := range r.lifecycle {
		raw, err := agui.Encode(e)
		if err != nil {
			return p, fmt.Errorf("relay: encode progress: %w", err)
		}
		p.Lifecycle = append(p.Lifecycle, raw)
	}
	return p, nil
}

// Repeat continues an earlier attempt: it emits the first p.Emitted events of that attempt again, and changes
// their IDs where this attempt has others. Call it once, before Add. It panics if events has fewer than
// p.Emitted events. The errors are those of Add, and that of progress that cannot be decoded.
func (r *Relay) Repeat(ctx context.Context, p Progress, events []agui.Event) error {
	for _, raw := range p.Lifecycle {
		e, err := agui.Decode(raw)
		if err != nil {
			return fmt.Errorf("relay: progress: %w", err)
		}
		r.lifecycle = append(r.lifecycle, e)
	}
	r.changed = maps.Clone(p.Changed)
	events = events[:p.Emitted]
	for _, e := range events {
		r.renameRepeated(e)
	}
	return r.emit(ctx, events...)
}
