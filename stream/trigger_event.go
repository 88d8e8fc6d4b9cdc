package stream

// TriggerEvent identifies the event that starts a run, by a trigger of the run's agent.
type TriggerEvent struct {
	// ID and Source identify the event, as in CloudEvents.
	ID     string `json:"id"`
	Source string `json:"source"`
	Type   string `json:"type"`
}
