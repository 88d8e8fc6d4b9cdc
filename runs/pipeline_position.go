package runs

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// PipelinePosition is how far a pipeline has come. The workflow carries it from step to step, run
// to run and execution to execution. Only the activity pipeline.advance interprets the tree
// position.
type PipelinePosition struct {
	TreePosition pipeline.TreePosition `json:"treePosition"`
	// Origin is the run that began the pipeline, Input its input. Later runs that continue it have
	// others.
	Origin string `json:"origin"`
	Input  uint64 `json:"input,omitempty"`
	// Number is the number of a program's step, Tree the record that has the step; 0 = the steps
	// are the agent's.
	Number int    `json:"number,omitempty"`
	Tree   uint64 `json:"tree,omitempty"`
	// Child is set if the pipeline is a subagent's.
	Child *Child `json:"child,omitempty"`
	// Items are the records with the items of the branches that led here, one for each branch in
	// the tree position.
	Items []uint64 `json:"items,omitempty"`
	// Active is the agent or call that the pipeline has reached, Branches are the branches, Wake is
	// when a wait is over. At most one is set.
	Active   *ActiveStep `json:"active,omitempty"`
	Branches *Branches   `json:"branches,omitempty"`
	Wake     time.Time   `json:"wake,omitzero"`
	// Answer has the call of an active step that is a tool call or an approval, until the workflow
	// makes the call.
	Answer *ModelAnswer `json:"answer,omitempty"`
	// Event is how the active step ended; nil = it is under way. Answered is the message with which
	// an agent ended, Result the record that keeps the value of its answer; 0 = any text was allowed.
	Event    *pipeline.Event `json:"event,omitempty"`
	Answered string          `json:"answered,omitempty"`
	Result   uint64          `json:"result,omitempty"`
	// LastAnswer is the last message with which an agent ended in a subagent's pipeline: it becomes
	// the result of the call.
	LastAnswer string `json:"lastAnswer,omitempty"`
	// Advances counts the advances of this run.
	Advances int `json:"advances,omitempty"`
	// Exceeded is the limit about which approvers are asked before Branches begin.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	// End is how the run ends after compensation; nil = it is not about to end.
	End *PendingEnd `json:"end,omitempty"`
}

// PendingEnd is how a run ends after compensation.
type PendingEnd struct {
	Outcome Outcome `json:"outcome"`
	pipeline.Failure
}

// Prefix begins the IDs of the steps of a program.
func (pos *PipelinePosition) Prefix() string {
	if pos == nil || pos.Number == 0 {
		return ""
	}
	return fmt.Sprintf("do/%d/", pos.Number)
}

// question returns the record with what the active step asks people; 0 = it asks nothing.
func (pos *PipelinePosition) question() uint64 {
	if pos == nil || pos.Active == nil || len(pos.Active.PipelineStep.Prompts) == 0 {
		return 0
	}
	return pos.Active.PipelineStep.Prompts[len(pos.Active.PipelineStep.Prompts)-1]
}

// MaxValue bounds the value of an expression that a program asks for, in bytes of JSON.
const MaxValue = 8 << 10
