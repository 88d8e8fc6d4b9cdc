package relay

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Request is the run that a Relay relays.
type Request struct {
	Agent string
	Run   stream.Run
	// Input is what the remote received, with its own IDs. IDs are the thread's IDs of its messages and
	// calls.
	Input *agui.RunAgentInput
	IDs   []string
	// Before are the messages before the run, as clients have them; nil = clients must not be sent a
	// MESSAGES_SNAPSHOT, because others write to the thread at the same time.
	Before []agui.Message
}
