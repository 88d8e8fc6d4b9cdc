package runs

// What is said to the workflow of a thread, by updates and signals.

// OnBusy says what is to become of a run whose thread has another one that is active.
type OnBusy string

// What may become of it.
const (
	OnBusyReject    OnBusy = "reject"
	OnBusyEnqueue   OnBusy = "enqueue"
	OnBusyInterrupt OnBusy = "interrupt"
	// OnBusySteer is refused like OnBusyReject: what the run says is steered to the one that is active.
	OnBusySteer OnBusy = "steer"
)

// OpenPolicy says what becomes of an input that leaves open what the thread waits for.
type OpenPolicy string

// What may become of it.
const (
	OpenReject  OpenPolicy = "reject"
	OpenQueue   OpenPolicy = "queue"   // it waits until nothing is open any more
	OpenAbandon OpenPolicy = "abandon" // what is open is given up
)

// Submit offers a run to the workflow that occupies its thread.
type Submit struct {
	RunID  string `json:"run"`
	Digest string `json:"digest"`
	OnBusy OnBusy `json:"onBusy,omitempty"` // none is OnBusyReject
	// Decisions answer what the thread waits for.
	Decisions []Decision `json:"decisions,omitempty"`
	// Offer is the run, for whoever does not only want to attach, or to hear which run is active.
	Offer *Input `json:"offer,omitempty"`
}

// Submitted is the workflow's answer to a Submit that it takes.
type Submitted struct {
	// Attached: the run is the one that is active.
	Attached bool `json:"attached,omitempty"`
	// Queued: the run is going to be active.
	Queued bool `json:"queued,omitempty"`
	// Interrupted is the active run that has to make way.
	Interrupted string `json:"interrupted,omitempty"`
	// Closing: the offer is not kept, since the workflow closes; the run is to be started.
	Closing bool `json:"closing,omitempty"`
	// Open: more people have to approve. What the offer decided was taken, the run was not.
	Open bool `json:"open,omitempty"`
}

// Cancel is what SignalCancel carries: a signal, since a cancel has to reach a workflow that no
// worker can run at this moment. It names the run, since the thread may have gone on to another.
type Cancel struct {
	RunID string `json:"run"`
}

// Steer is what UpdateSteer carries: what somebody says to the run that is active, as the sequence of
// a proposal. The same again is taken once.
type Steer struct {
	RunID string `json:"run"`
	Input uint64 `json:"input"`
}

// Steered is the answer to a Steer that is taken.
type Steered struct {
	Repeated bool `json:"repeated,omitempty"`
}

// Pause is what UpdatePause and UpdateResume carry: the run that is meant, or none for the one that
// is active.
type Pause struct {
	RunID string `json:"run,omitempty"`
}

// Paused is the answer to a Pause that is taken: the run that is active.
type Paused struct {
	RunID string `json:"run"`
}
