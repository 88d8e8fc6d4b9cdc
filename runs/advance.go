package runs

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// ReplaceEvent corrects a cancel that was reported for a call which had in fact ended: it applies
// to the step that next has reached. A pipeline that is at its end, or compensates, is not
// cancelled.
func (pos *PipelinePosition) ReplaceEvent(next AdvanceResult, event *pipeline.Event) {
	switch {
	case event.Kind != pipeline.EventCancelled:
	case next.IsEnd(), next.TreePosition.Undoing != nil:
		pos.End = nil
	default:
		pos.Event = event
	}
}

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
	// AfterCall tells that the activity of the call before makes this advance.
	AfterCall bool `json:"-"`
}

// AdvanceResult is the output of ActivityAdvance: the next action of the pipeline, and its tree
// position. The pipeline is at its end if [AdvanceResult.IsEnd].
type AdvanceResult struct {
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
	// CallEnded tells that the call before ended and its activity made this advance, also if the
	// workflow did not learn of it.
	CallEnded bool `json:"callEnded,omitempty"`
	// Value is the value of AdvanceInput.Expression.
	Value json.RawMessage `json:"value,omitempty"`
	// Usage is that of model calls of which the workflow has no answer: of the step that failed,
	// and of subagents on unfinished lanes.
	Usage []Usage `json:"usage,omitempty"`
}

// IsEnd reports whether the pipeline has come to its end.
func (a AdvanceResult) IsEnd() bool { return a.Active == nil && a.Branches == nil && a.Sleep == 0 }

// AdvanceAfter returns the input of the chained advance for a call that has ended. opened is the
// last record of the agent's lane. The call must have a Chained.
func (c ToolCall) AdvanceAfter(opened uint64, now time.Time) AdvanceInput {
	in := AdvanceInput{Step: c.Step, Position: c.Chained.Position, Now: now, Day: c.Chained.Day, AfterCall: true}
	in.ID, in.Turn, in.Name, in.Closes, in.After, in.PipelineStep = c.Chained.ID, 0, "", c.Name, opened, nil
	in.Position.Active = &ActiveStep{AgentRef: AgentRef{Agent: c.Agent, Revision: c.Revision}, PipelineStep: *c.PipelineStep, CallID: c.CallID}
	in.Position.Event = &pipeline.Event{Kind: pipeline.EventDone}
	return in
}
