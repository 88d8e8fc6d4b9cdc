package runs

import "time"

// PriorUsage is what was used for an input, besides the usage of this run. A run that continues
// another one takes it over: all of it if the agent has soft limits, and otherwise only Day.
type PriorUsage struct {
	// Turns counts the model calls, those of this run included.
	Turns int `json:"turns,omitempty"`
	// Tokens, Cost and Duration are those of the earlier runs for the input.
	Tokens   int64         `json:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Cost     int64         `json:"cost,omitempty"`
	// Allowed is how far approvers have let the run exceed soft limits, Day how much of its
	// tenant's day; zero = they were not asked.
	Allowed SoftLimits   `json:"allowed,omitzero"`
	Day     DayAllowance `json:"day,omitzero"`
}
