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
	// Unfinished are those whose step did not finish.
	Unfinished []Lane `json:"unfinished,omitempty"`
}

// FinishResult is the run's terminal record: the one that was written, or an earlier one, which
// stands.
type FinishResult struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`
	Seq     uint64  `json:"seq"`
	// AskedAt and Expires are set if an earlier record stands and it has interrupts: when they
	// opened, and when each expires, by call ID.
	AskedAt time.Time            `json:"askedAt,omitzero"`
	Expires map[string]time.Time `json:"expires,omitempty"`
}

// Error types: how activities and updates tell the workflow and the api what went wrong. The codes
// of model errors (llm.Code) are used as they are.
const (
	// ErrorFenced: another execution owns the run, or another attempt the lane.
	ErrorFenced = "fenced"
	// ErrorLogLost: the log lacks records that the workflow knows of.
	ErrorLogLost = "log_lost"
	// ErrorBusy refuses a Submit: another run is active. Its detail is an Active.
	ErrorBusy = "busy"
	// ErrorQueueFull refuses a Submit: too many runs wait.
	ErrorQueueFull = "queue_full"
	// ErrorNotActive refuses a Pause and a Steer: the run waits, or is over.
	ErrorNotActive = "not_active"
	// ErrorInterrupted refuses a Submit: the thread waits for decisions that it does not bring. Its
	// detail is an Active.
	ErrorInterrupted = "interrupted"
	// ErrorMissingResults refuses a Submit: the thread waits for results of the client's tools that
	// it does not bring. Its detail is an Active.
	ErrorMissingResults = "missing_results"
	// ErrorTooMuchSteering refuses a Steer: the run has taken as many as it can.
	ErrorTooMuchSteering = "too_much_steering"
	// ErrorRunIDReused refuses a Submit: the active run has this id and another input.
	ErrorRunIDReused = "run_id_reused"
)

// FailureDetail is the detail of an activity's error: the record of the log with what must not
// enter a history.
type FailureDetail struct {
	Record uint64 `json:"record"`
}

// Codes of RUN_ERROR that name a limit.
const (
	CodeLimitTurns         = "limit_turns"
	CodeLimitTokens        = "limit_tokens"
	CodeLimitCost          = "limit_cost"
	CodeLimitDuration      = "limit_duration"
	CodeLimitParallelTools = "limit_parallel_tools"
	CodeLimitSubagents     = "limit_subagents"
	CodeBudgetExceeded     = "budget_exceeded" // of the tenant's day
)

// CodeApprovalExpired ends a run whose agent fails when nobody decides in time.
const CodeApprovalExpired = "approval_expired"

// CodeInternal ends a run because of a defect.
const CodeInternal = "internal"

// CodeProgram ends a run whose program has failed.
const CodeProgram = "program_failed"

// CodeProgramUnknown ends a run whose program its worker does not have.
const CodeProgramUnknown = "program_unknown"

// ErrorRunFailed is the error type of a firing whose run failed. Temporal may then pause the
// schedule.
const ErrorRunFailed = "run_failed"

// AdoptTimes takes over from the terminal record when the interrupts opened and when they expire; w
// may be nil. The record may be older than this attempt at the workflow task, if a worker died
// after writing it.
func (s *Interrupts) AdoptTimes(done FinishResult) {
	if s == nil {
		return
	}
	for i := range s.Items {
		if at, ok := done.Expires[s.Items[i].ID]; ok {
			s.Items[i].Expires = at
		}
	}
	if done.AskedAt.IsZero() {
		return
	}
	s.Opened = done.AskedAt
	for i := range s.Pending {
		if n := &s.Pending[i]; n.Event == EventOpened {
			n.At = s.Opened
		}
	}
}
