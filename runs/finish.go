package runs

import "time"

// FinishInput is the input of ActivityFinish, which writes the run's terminal record.
type FinishInput struct {
	Run       Ref     `json:"run"`
	Execution string  `json:"execution"`
	After     uint64  `json:"after"`
	Outcome   Outcome `json:"outcome"`
	Code      string  `json:"code,omitempty"`
	Message   string  `json:"message,omitempty"` // never content
	// Detail is the sequence of the record with the details of RUN_ERROR's message; 0 = none.
	Detail uint64  `json:"detail,omitempty"`
	Usage  []Usage `json:"usage,omitempty"`
	// Result is the sequence of the record that keeps the run's result; 0 = it has none.
	Result uint64 `json:"result,omitempty"`
	// Interrupts are those that the run ends with: approvals, questions and client tool calls; nil
	// = none.
	Interrupts *Interrupts `json:"interrupts,omitempty"`
	// Steered is the steering that no model call has received, because the run ends before.
	Steered []uint64 `json:"steered,omitempty"`
	// The beginning and Agent serve a run that ends before its first step began.
	Beginning
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// HandedOver tells that this is another agent than the run has begun with.
	HandedOver bool `json:"handedOver,omitempty"`
	// Answers means that the run's input answered interrupts of its thread.
	Answers bool `json:"answers,omitempty"`
	// First is the id of the run's first step.
	First string `json:"first,omitempty"`
	// Unfinished are the lanes whose step did not finish.
	Unfinished []Lane `json:"unfinished,omitempty"`
}

// FinishResult is the run's terminal record: the one that was written, or an earlier one, which
// stands.
type FinishResult struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`
	Seq     uint64  `json:"seq"`
	// OpenedAt and Expires are set if an earlier record stands and it has interrupts: when they
	// opened, and when each expires, by call ID.
	OpenedAt time.Time            `json:"openedAt,omitzero"`
	Expires  map[string]time.Time `json:"expires,omitempty"`
}
