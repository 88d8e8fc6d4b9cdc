package workflows

import (
	"fmt"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// ending is how a run, a turn or a step ends. The zero ending means that it does not end: the run,
// or in a pipeline the active step, continues.
type ending struct {
	outcome    runs.Outcome
	interrupts *runs.Interrupts // the interrupts that it ends with; nil = none
	code       string           // of OutcomeError: the code of RUN_ERROR
	message    string           // for clients; never content
	detail     uint64           // sequence of the record with details of the failure; 0 = none
	refused    bool             // approvers did not let the run pass a soft limit: it ends also within a step
	ofStep     bool             // the limit is the step's agent's: the step fails, not the run
}

// isOver reports whether the run, turn or step ends.
func (e ending) isOver() bool { return e.outcome != "" }

var (
	successEnding   = ending{outcome: runs.OutcomeSuccess}
	cancelledEnding = ending{outcome: runs.OutcomeCancelled}
	// expiredEnding ends a run whose rule fails it when an interrupt expires.
	expiredEnding = ending{outcome: runs.OutcomeError, code: runs.CodeApprovalExpired, message: "the interrupt expired without a decision"}
	// tooManyInterruptsEnding ends a run whose interrupts do not fit into a payload.
	tooManyInterruptsEnding = limitEnding(runs.CodeLimitParallelTools, "the run has too many open interrupts")
)

// timeout is the failure of a step whose deadline has passed.
var timeout = pipeline.Failure{Code: "timeout", Message: "the step took too long"}

// withInterrupts returns the ending of a run that waits for interrupts.
func withInterrupts(set *runs.Interrupts) ending {
	return ending{outcome: set.Outcome(), interrupts: set}
}

// limitEnding returns the ending of a run or step that has reached a limit. code is a code of
// package runs for limits, such as runs.CodeLimitSubagents.
func limitEnding(code, format string, args ...any) ending {
	return ending{outcome: runs.OutcomeError, code: code, message: fmt.Sprintf(format, args...)}
}

// invalidOutputEnding returns the ending of a run or step whose agent has no repairs left. The record of
// its last answer has the errors.
func invalidOutputEnding(answer runs.ModelAnswer) ending {
	return ending{outcome: runs.OutcomeError, code: answer.InvalidCode(), message: "the answer does not fit the schema", detail: answer.Seq}
}

// programFailure returns the ending of a run whose program failed, with the code program_failed.
func programFailure(message string) ending {
	return ending{outcome: runs.OutcomeError, code: runs.CodeProgram, message: message}
}

// endingFromFailure returns the ending of a run that fails with f.
func endingFromFailure(f pipeline.Failure) ending {
	return ending{outcome: runs.OutcomeError, code: f.Code, message: f.Message, detail: f.Record}
}

// endingAfterCompensation returns how the run ends after compensation.
func endingAfterCompensation(t *runs.PendingEnd) ending {
	if t.Outcome == runs.OutcomeCancelled {
		return cancelledEnding
	}
	end := endingFromFailure(t.Failure)
	end.outcome = t.Outcome
	return end
}

// failure returns the ending as the failure of a step, for the event of the next advance.
func (e ending) failure() pipeline.Failure {
	return pipeline.Failure{Code: e.code, Message: e.message, Record: e.detail}
}

// endsPipeline reports whether no step may handle an ending: the run is cancelled, has used up its
// tokens or its money, or an approver refused to let it exceed a limit.
func (e ending) endsPipeline() bool {
	spent := e.code == runs.CodeLimitTokens || e.code == runs.CodeLimitCost
	return e.outcome == runs.OutcomeCancelled || spent && !e.ofStep || e.refused
}
