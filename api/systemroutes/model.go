package systemroutes

import "time"

// ModelCalls is what keeps workers from calling models now, and what they do at providers with a limit.
// Both lists are empty if the log does not answer.
type ModelCalls struct {
	Models    []Model    `json:"models"`
	Providers []Provider `json:"providers"`
}

// Model is a model that some workers do not call now.
type Model struct {
	Model string `json:"model"` // provider/model
	// Circuits are those that are not closed. Each worker has its own.
	Circuits []Circuit `json:"circuits"`
	// PausedUntil is when the provider wants calls again; nil = it does now.
	PausedUntil *time.Time `json:"pausedUntil,omitempty"`
}

// Circuit is the circuit of a model in a worker. State is open or half-open.
type Circuit struct {
	Worker string    `json:"worker"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
}

// Provider is a model provider with a limit, and the calls of all workers.
type Provider struct {
	Provider string `json:"provider"`
	Calls    int    `json:"calls"`
	Waiting  int    `json:"waiting"`
}
