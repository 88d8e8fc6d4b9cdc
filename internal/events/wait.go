package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/exact"
	"github.com/perdure/perdure/stream"
)

// Wait is an open wait of a thread, as the API shows it.
type Wait struct {
	// ID is the ID of the interrupt.
	ID       string `json:"id"`
	ThreadID string `json:"threadId"`
	// RunID is the run that opened the wait.
	RunID string `json:"runId"`
	Agent string `json:"agent"`
	// Kind is timer or event.
	Kind stream.WaitKind `json:"kind"`
	// Event is the name of the event, Match has values of its data by their path.
	Event string       `json:"event,omitempty"`
	Match exact.Object `json:"match,omitempty"`
	// Message describes the wait.
	Message  string    `json:"message"`
	OpenedAt time.Time `json:"openedAt"`
	// Until is when a timer ends, or an event is awaited no longer.
	Until time.Time `json:"until"`
	// CallID and Number are those of decisions about the wait. RunRef is the ID of the run in the log.
	CallID string `json:"call"`
	Number int    `json:"number"`
	RunRef string `json:"run"`
	// Tenant is the tenant of the thread, which storedWait keeps.
	Tenant string `json:"-"`
}

// thread returns the thread that waits.
func (w *Wait) thread() stream.Thread { return stream.Thread{Tenant: w.Tenant, ID: w.ThreadID} }

const (
	waitPrefix  = "wait."
	claimPrefix = "claim."
)

// threadKey begins the keys about a thread below a prefix.
func threadKey(prefix string, t stream.Thread) string {
	return prefix + stream.KeyToken(t.Tenant) + "." + stream.KeyToken(t.ID)
}

// key returns the key of the wait: wait.<tenant>.<thread>.<interrupt>.
func (w *Wait) key() string { return threadKey(waitPrefix, w.thread()) + "." + stream.KeyToken(w.ID) }

// Position orders the waits of a tenant by the time at which they end: it is a cursor of their list.
func (w *Wait) Position() string { return fmt.Sprintf("%012x.%s", w.Until.UnixMilli(), w.ID) }

// storedWait is the value of a wait's key. The tenant is in the value, because the key may have only a
// digest of it.
type storedWait struct {
	Tenant string `json:"tenant"`
	Wait   *Wait  `json:"wait"`
}

// decodeWait decodes the value of a key.
func decodeWait(value []byte) (*Wait, error) {
	var stored storedWait
	if err := json.Unmarshal(value, &stored); err != nil || stored.Wait == nil {
		return nil, fmt.Errorf("events: decode wait: %w", err)
	}
	stored.Wait.Tenant = stored.Tenant
	return stored.Wait, nil
}
