package stream

import "time"

// Retrying tells why a run makes no progress: an attempt of an activity has failed, and Temporal
// tries again. If several activities of a run are retried concurrently, the index has one of them.
type Retrying struct {
	// Step is the ID of the step, Activity the name of its Temporal activity, and Name the step as
	// clients see it; "" = they see none.
	Step     string `json:"step"`
	Activity string `json:"activity"`
	Name     string `json:"name,omitempty"`
	// Attempt is the number of the attempt that failed last, from 1, and Error why. The error has no
	// content of the conversation.
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	// Since is when the first attempt began.
	Since time.Time `json:"since"`
}
