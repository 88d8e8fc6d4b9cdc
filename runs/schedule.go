package runs

import "time"

// FireInput starts schedule.fire.v1: a time of a schedule has come. The schedule itself is in its
// store.
type FireInput struct {
	Tenant   string `json:"tenant"`
	Schedule string `json:"schedule"`
	// Revision is that of what the schedule says.
	Revision uint64 `json:"revision"`
	// ParkAfter is that of the run.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`
	// TryCancel: where the firing is cancelled it cancels its run, and does not wait for the run's
	// end.
	TryCancel bool `json:"tryCancel,omitempty"`
	// At is the nominal time. Temporal's schedules give it beside the input.
	At time.Time `json:"at,omitzero"`
	// Fire is the firing's own workflow id.
	Fire string `json:"fire,omitempty"`
	// Fired is set where an execution goes on with the firing of the one before it, and for the
	// activity that cancels what was begun.
	Fired *Fired `json:"fired,omitempty"`
}

// Fired is the run that a firing started.
type Fired struct {
	Run Ref `json:"run"`
	// Refused is why the thread did not take the run (ErrorBusy …); empty = it did.
	Refused string `json:"refused,omitempty"`
	// AlreadyBegun tells that the run had begun before, by a firing of the same second: it may be
	// over already, and has told that one.
	AlreadyBegun bool `json:"alreadyBegun,omitempty"`
}

// Ended is the payload of SignalEnded: how a run ended that a firing started. If the outcome is
// empty or OutcomeFenced, the log has it.
type Ended struct {
	Outcome Outcome `json:"outcome,omitempty"`
	Code    string  `json:"code,omitempty"`
}

// Status is how far a run has come. Over tells that nothing continues for it, and no interrupts are
// open.
type Status struct {
	Over bool `json:"over,omitempty"`
	Ended
}

// FireResult is the result of schedule.fire.v1.
type FireResult struct {
	Fired
	Ended
}
