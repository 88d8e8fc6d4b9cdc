package runs

import "time"

// Spent is what was done for an input besides the usage of this run. Only runs with soft limits
// carry all of it on behind their end; others carry what people allowed for a day.
type Spent struct {
	// Turns are the model calls, those of this run included.
	Turns int `json:"turns,omitempty"`
	// Tokens, Cost and Duration are those of the runs before.
	Tokens   int64         `json:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Cost     int64         `json:"cost,omitempty"`
	// Allowed is how far people have let the run go, Day how far on a day of its tenant; zero =
	// they were not asked.
	Allowed SoftLimits   `json:"allowed,omitzero"`
	Day     DayAllowance `json:"day,omitzero"`
}
