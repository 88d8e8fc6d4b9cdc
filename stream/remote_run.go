package stream

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// RemoteRun is what the done record of a remote agent's run keeps for its next run.
type RemoteRun struct {
	// Thread is the remote's ID of the thread.
	Thread string `json:"thread"`
	// Interrupts are the interrupts with which the run has ended.
	Interrupts []RemoteInterrupt `json:"asked,omitempty"`
}

// RemoteInterrupt is an interrupt of a remote agent.
type RemoteInterrupt struct {
	// CallID is what decisions name (CallOf).
	CallID string `json:"callId"`
	// ToolCallID is the thread's ID of the tool call that it is about; "" = of none.
	ToolCallID string `json:"toolCallId,omitempty"`
	// Interrupt is the interrupt in AG-UI's form, with the remote's IDs.
	Interrupt agui.Interrupt `json:"interrupt"`
	// Event is the value of the custom event that stands for it; nil = it was in an outcome.
	Event json.RawMessage `json:"event,omitempty"`
}
