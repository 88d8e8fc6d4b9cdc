package runs

import "time"

// FiringInput starts schedule.fire.v1, one firing of a schedule. The schedule itself is in its
// store.
type FiringInput struct {
	Tenant   string `json:"tenant"`
	Schedule string `json:"schedule"`
	// Revision is the revision of the schedule in the store.
	Revision uint64 `json:"revision"`
	// ParkAfter is that of the run.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`
	// TryCancel means that a cancelled firing cancels its run, and does not wait for the run's end.
	TryCancel bool `json:"tryCancel,omitempty"`
	// At is the nominal time of the firing, from the search attribute that Temporal's schedules
	// set.
	At time.Time `json:"at,omitzero"`
	// FiringID is the firing's own workflow id.
	FiringID string `json:"firingId,omitempty"`
	// Fired is set if the execution continues the firing of the one before it, and for the activity
	// that cancels the run.
	Fired *FiredRun `json:"fired,omitempty"`
}

// FiredRun is the run that a firing started.
type FiredRun struct {
	Run Ref `json:"run"`
	// Refused is why the thread did not take the run (ErrorBusy …); empty = it did.
	Refused string `json:"refused,omitempty"`
	// AlreadyBegun means that a firing of the same second had begun the run. The run may be over
	// already, and then has signaled its end to that firing only.
	AlreadyBegun bool `json:"alreadyBegun,omitempty"`
}

// RunEnd is the payload of SignalEnded: how the run of a firing ended. If the outcome is empty or
// OutcomeFenced, the firing reads it from the log.
type RunEnd struct {
	Outcome Outcome `json:"outcome,omitempty"`
	Code    string  `json:"code,omitempty"`
}

// RunStatus is how far a run has come. Over means that no run continues it, and no interrupts are
// open.
type RunStatus struct {
	Over bool `json:"over,omitempty"`
	RunEnd
}

// FiringResult is the result of schedule.fire.v1.
type FiringResult struct {
	FiredRun
	RunEnd
}
