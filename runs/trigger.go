package runs

// TriggerInput starts event.trigger.v1: an event that starts a run. It refers to the event and to the
// trigger, and has no content of them.
type TriggerInput struct {
	Tenant string `json:"tenant"`
	// Agent and Revision are those of the definition, Trigger is the index of its trigger.
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	Trigger  int    `json:"trigger"`
	// Event is the sequence of the event in its stream. EventDigest identifies the event by its source and ID: two
	// events have the same one if the second arrives after the first is forgotten.
	Event       uint64 `json:"event"`
	EventDigest string `json:"digest"`
}
