package runs

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// AdvanceInput is the input of ActivityAdvance, which records how the active step ended and finds
// the next one.
type AdvanceInput struct {
	Step
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall        `json:"announces,omitempty"`
	Position  PipelinePosition `json:"position"`
	// Now is the workflow's time, by which deadlines are measured.
	Now time.Time `json:"now"`
	// Tree are the steps of a program, when it begins them. Expression is what a program evaluates:
	// the activity does nothing else then.
	Tree       json.RawMessage `json:"tree,omitempty"`
	Expression string          `json:"expression,omitempty"`
	// EvaluatesResult tells that the program has ended: the activity evaluates its result, and does
	// nothing else.
	EvaluatesResult bool `json:"evaluatesResult,omitempty"`
	// Day is that of a [ModelCall]. Branches cannot ask approvers, so the advance checks the day
	// before they begin.
	Day *DayAllowance `json:"day,omitempty"`
	// Resumes tells that the pipeline continues in another run: the activity opens the steps that
	// it is in there, and does nothing else.
	Resumes bool `json:"resumes,omitempty"`
	// Suspended are the calls for whose interrupts the child ends before its steps do.
	Suspended []string `json:"suspended,omitempty"`
	// Unfinished are the lanes whose step did not finish, FailedStep is the step before this one if
	// it failed.
	Unfinished []Lane      `json:"unfinished,omitempty"`
	FailedStep *FailedStep `json:"failedStep,omitempty"`
}

// AfterAttempts returns the input for an activity that continues after earlier attempts.
func (in AdvanceInput) AfterAttempts(earlier EarlierAttempts) AdvanceInput {
	in.Earlier = earlier
	return in
}

// Stopping returns the input for a run that stops (see Step.Stops).
func (in AdvanceInput) Stopping() AdvanceInput {
	in.Stops = true
	return in
}

// AdvanceResult is the output of ActivityAdvance: the next action of the pipeline, and its tree
// position. The pipeline is at its end if [AdvanceResult.IsEnd].
type AdvanceResult struct {
	LocalAnswer
	Seq          uint64                `json:"seq"`
	TreePosition pipeline.TreePosition `json:"treePosition"`
	Active       *ActiveStep           `json:"active,omitempty"`
	// Prompts means that the advance's record has the agent's prompt.
	Prompts  bool              `json:"prompts,omitempty"`
	Answer   *ModelAnswer      `json:"answer,omitempty"` // has the call of an active step that is one
	Branches *Branches         `json:"branches,omitempty"`
	Exceeded *ExceededLimit    `json:"exceeded,omitempty"` // approvers are asked before the branches begin
	Sleep    time.Duration     `json:"sleep,omitempty"`
	Failed   *pipeline.Failure `json:"failed,omitempty"`
	// Value is the value of AdvanceInput.Expression.
	Value json.RawMessage `json:"value,omitempty"`
	// HasResult tells that the steps have ended, and that the record keeps the result of the agent.
	HasResult bool `json:"hasResult,omitempty"`
	// Usage is that of model calls of which the workflow has no answer: of the step that failed,
	// and of subagents on unfinished lanes.
	Usage []Usage `json:"usage,omitempty"`
}

// IsEnd reports whether the pipeline has come to its end.
func (a AdvanceResult) IsEnd() bool { return a.Active == nil && a.Branches == nil && a.Sleep == 0 }
