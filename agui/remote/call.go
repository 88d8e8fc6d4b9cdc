package remote

import (
	"cmp"
	"net/http"
	"time"

	"github.com/perdure/perdure/agui"
)

// Call is one run of a remote agent.
type Call struct {
	// URL is the endpoint, with the scheme http or https.
	URL string
	// Header is sent with the request, with the secrets filled in. A redirect to another host is
	// refused, so no other host receives it.
	Header http.Header
	// Input is sent in the form of Protocol, which sets its ProtocolVersion.
	Input    agui.RunAgentInput
	Protocol Protocol
	// LastEventID continues a run after an event that was received before; "" = a new run.
	LastEventID string
	Limits      Limits
	// Redact hides secrets in the text of a refusal, before it is cut; nil = there are none.
	Redact func(text string) string
}

// Limits bounds what a remote may send. Zero values are the defaults.
type Limits struct {
	Events     int           // events of a run; 100,000 by default
	EventBytes int           // bytes of an event; 4 MiB by default
	RunBytes   int64         // bytes of a response; 256 MiB by default
	Silence    time.Duration // time without a byte; 5 minutes by default
}

// orDefault returns the limits with the defaults filled in.
func (l Limits) orDefault() Limits {
	return Limits{
		Events:     cmp.Or(l.Events, 100_000),
		EventBytes: cmp.Or(l.EventBytes, 4<<20),
		RunBytes:   cmp.Or(l.RunBytes, 256<<20),
		Silence:    cmp.Or(l.Silence, 5*time.Minute),
	}
}

// Event is a normalized event of a remote agent.
type Event struct {
	agui.Event

	// ID is the last SSE event ID of which everything was yielded, for Call.LastEventID; "" = the
	// remote has sent none. One SSE event can become several events; the last of them has its ID.
	ID string
	// RunID is the remote's ID of the run to which the event belongs. It differs from that of the
	// input for a replayed run, and for a remote that chooses run IDs.
	RunID string
	// Warnings are the tolerated deviations since the previous event, at most 100. Their pointers and
	// types may have content, see ShownType.
	Warnings []agui.Warning
}
