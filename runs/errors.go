package runs

// Error types: how activities and updates tell the workflow and the api what went wrong. The codes
// of model errors (llm.Code) are used as they are.
const (
	// ErrorFenced: another execution owns the run, or another attempt the lane.
	ErrorFenced = "fenced"
	// ErrorLogLost: the log lacks records that the workflow knows of.
	ErrorLogLost = "log_lost"
	// ErrorBusy refuses a SubmitRequest: another run is active. Its detail is an ActiveRun.
	ErrorBusy = "busy"
	// ErrorQueueFull refuses a SubmitRequest: too many runs wait.
	ErrorQueueFull = "queue_full"
	// ErrorNotActive refuses a PauseRequest and a SteerRequest: the run waits, or is over.
	ErrorNotActive = "not_active"
	// ErrorInterrupted refuses a SubmitRequest: the thread waits for decisions that it does not
	// bring. Its detail is an ActiveRun.
	ErrorInterrupted = "interrupted"
	// ErrorMissingResults refuses a SubmitRequest: the thread waits for results of the client's
	// tools that it does not bring. Its detail is an ActiveRun.
	ErrorMissingResults = "missing_results"
	// ErrorTooMuchSteering refuses a SteerRequest: the run has taken as many as it can.
	ErrorTooMuchSteering = "too_much_steering"
	// ErrorRunIDReused refuses a SubmitRequest: the active run has this id and another input.
	ErrorRunIDReused = "run_id_reused"
	// ErrorWorkerLost: the worker of the attempt died. Another process reports it.
	ErrorWorkerLost = "worker_lost"
	// ErrorWorkerStopped: the worker of the attempt stopped.
	ErrorWorkerStopped = "worker_stopped"
	// ErrorRemoteUnreachable: the server of a remote agent accepts no connection. Its value is that of
	// remote.KindUnreachable.
	ErrorRemoteUnreachable = "remote_unreachable"
	// ErrorLogUnavailable: NATS did not respond.
	ErrorLogUnavailable = "log_unavailable"
	// ErrorProviderBusy: a model was not called, because of a limit of the workers or of its provider.
	// Its value is that of llm.CodeProviderBusy.
	ErrorProviderBusy = "provider_busy"
	// ErrorRunFailed: the run of a firing failed. Temporal may then pause the schedule.
	ErrorRunFailed = "run_failed"
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

// CodeInvalidOutput ends a run whose answer does not fit the output of its agent.
const CodeInvalidOutput = "invalid_output"

// CodeContentFilter ends a run whose answer must fit a schema, and was refused or withheld.
const CodeContentFilter = "content_filter"

// CodeInternal ends a run because of a defect.
const CodeInternal = "internal"

// CodeProgram ends a run whose program has failed.
const CodeProgram = "program_failed"

// CodeProgramUnknown ends a run whose program its worker does not have.
const CodeProgramUnknown = "program_unknown"
