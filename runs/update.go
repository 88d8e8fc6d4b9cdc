package runs

// The payloads of updates and signals to a thread.

// OnBusy says what happens to an input whose thread has an active run.
type OnBusy string

// The values of OnBusy.
const (
	OnBusyReject    OnBusy = "reject"
	OnBusyEnqueue   OnBusy = "enqueue"
	OnBusyInterrupt OnBusy = "interrupt"
	// OnBusySteer is refused like OnBusyReject; the API then steers the active run with the input.
	OnBusySteer OnBusy = "steer"
)

// SubmitRequest is the payload of UpdateSubmit: it offers a run to the workflow of its thread.
type SubmitRequest struct {
	RunID  string `json:"run"`
	Digest string `json:"digest"`
	OnBusy OnBusy `json:"onBusy,omitempty"` // none is OnBusyReject
	// Decisions are those that the input contains.
	Decisions []Decision `json:"decisions,omitempty"`
	// Offer is the run; nil = the caller only attaches, or asks which run is active.
	Offer *Input `json:"offer,omitempty"`
}

// SubmitResult is the result of UpdateSubmit.
type SubmitResult struct {
	// Attached: the run is active already.
	Attached bool `json:"attached,omitempty"`
	// Queued: the run will be active.
	Queued bool `json:"queued,omitempty"`
	// Interrupted is the active run that was cancelled for this one; "" = none.
	Interrupted string `json:"interrupted,omitempty"`
	// Closing: the workflow closes and does not keep the offer. The caller starts the run.
	Closing bool `json:"closing,omitempty"`
	// Open: a quorum needs more approvals. The decisions were taken, the run was not.
	Open bool `json:"open,omitempty"`
}

// CancelRequest is the payload of SignalCancel. A signal reaches a workflow that no worker can run
// at the moment. It names the run, because the thread may have another one by now.
type CancelRequest struct {
	RunID string `json:"run"`
}

// SteerRequest is the payload of UpdateSteer: a message to the active run, by the sequence of its
// proposal in the log. The same proposal is taken once.
type SteerRequest struct {
	RunID string `json:"run"`
	Input uint64 `json:"input"`
}

// SteerResult is the result of UpdateSteer.
type SteerResult struct {
	Repeated bool `json:"repeated,omitempty"`
}

// PauseRequest is the payload of UpdatePause and UpdateResume. RunID is the run; "" means the
// active one.
type PauseRequest struct {
	RunID string `json:"run,omitempty"`
}

// PauseResult is the result of UpdatePause and UpdateResume, with the active run.
type PauseResult struct {
	RunID string `json:"run"`
}
