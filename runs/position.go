package runs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// ReplaceEvent corrects a cancel that was reported for a call which had in fact ended: it applies to the step that next has
// reached. A pipeline that is at its end, or compensates, is not cancelled.
func (w *Position) ReplaceEvent(next Advanced, event *pipeline.Event) {
	switch {
	case event.Kind != pipeline.EventCancelled:
	case next.IsEnd(), next.Cursor.Undoing != nil:
		w.End = nil
	default:
		w.Event = event
	}
}

// Position is how far a pipeline has come. The workflow carries it, and only the activity that advances interprets the cursor.
type Position struct {
	Cursor pipeline.Cursor `json:"cursor"`
	// Origin is the run that began the pipeline, Input its input. Later runs that continue it have others.
	Origin string `json:"origin"`
	Input  uint64 `json:"input,omitempty"`
	// Number is the number of a program's step, Tree the record that has the step; 0 = the steps are the agent's.
	Number int    `json:"number,omitempty"`
	Tree   uint64 `json:"tree,omitempty"`
	// Child is set if the pipeline is a subagent's.
	Child *Child `json:"child,omitempty"`
	// Items are the records with the items of the branches that led here, one for each branch in the cursor.
	Items []uint64 `json:"items,omitempty"`
	// Active is the agent or call that the pipeline has reached, Branches are the branches, Wake is when a wait is over. At most
	// one is set.
	Active   *ActiveStep `json:"active,omitempty"`
	Branches *Branches   `json:"branches,omitempty"`
	Wake     time.Time   `json:"wake,omitzero"`
	// Answer has the call of an active step that is a call, until the call is made.
	Answer *ModelAnswer `json:"answer,omitempty"`
	// Event is how the active step ended; nil = it is under way. Answered is the message with which an agent ended.
	Event    *pipeline.Event `json:"event,omitempty"`
	Answered string          `json:"answered,omitempty"`
	// LastAnswer is the last message with which an agent ended in a subagent's pipeline: it becomes the result of the call.
	LastAnswer string `json:"lastAnswer,omitempty"`
	// Advances counts the advances of this run.
	Advances int `json:"advances,omitempty"`
	// Exceeded is the limit about which people are asked before Branches begin.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	// End is how the run ends after compensation; nil = it is not about to end.
	End *PendingEnd `json:"end,omitempty"`
}

// PendingEnd is how a run ends after compensation.
type PendingEnd struct {
	Outcome Outcome `json:"outcome"`
	pipeline.Failure
}

// ActiveStep is a step that has an agent, a tool call or an approval.
type ActiveStep struct {
	AgentRef           // the agent; of a call, the agent whose approval rules apply
	Place    StepPlace `json:"place"`
	// CallID is the tool call; "" = the step is an agent. OutlastsCancel tells that the step has a compensation: whether the
	// call took effect must be known, so a cancel does not stop it.
	CallID         string    `json:"callId,omitempty"`
	OutlastsCancel bool      `json:"outlastsCancel,omitempty"`
	Deadline       time.Time `json:"deadline,omitzero"`
	// Turns counts the agent's model calls. Tokens and Cost are what it has used, with its subagents.
	Turns  int   `json:"turns,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
}

// Advance is the input of ActivityAdvance, which records how the active step ended and finds the next one.
type Advance struct {
	Step
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	Position  Position  `json:"position"`
	// Now is the workflow's time, by which deadlines are measured.
	Now time.Time `json:"now"`
	// Tree are the steps of a program, when it begins them. Expression is what a program evaluates: the activity does nothing
	// else then.
	Tree       json.RawMessage `json:"tree,omitempty"`
	Expression string          `json:"expression,omitempty"`
	// Day is that of a [ModelCall]. Branches cannot ask people, so the advance checks the day before they begin.
	Day *DayAllowance `json:"day,omitempty"`
	// Resumes tells that the pipeline continues in another run: the activity opens the steps that it is in there, and does
	// nothing else.
	Resumes bool `json:"resumes,omitempty"`
	// Suspended are the calls for whose interrupts the child ends before its steps do.
	Suspended []string `json:"suspended,omitempty"`
	// Unfinished are the lanes whose step did not finish, FailedStep is the step before this one if it failed.
	Unfinished []Lane      `json:"unfinished,omitempty"`
	FailedStep *FailedStep `json:"failedStep,omitempty"`
	// AfterCall tells that the activity of the call before makes this advance.
	AfterCall bool `json:"-"`
}

// Advanced is the output of ActivityAdvance: what comes next. The pipeline is at its end if [Advanced.IsEnd].
type Advanced struct {
	Seq    uint64          `json:"seq"`
	Cursor pipeline.Cursor `json:"cursor"`
	Active *ActiveStep     `json:"active,omitempty"`
	// Prompts tells that the advance's record has what the agent is asked.
	Prompts  bool              `json:"prompts,omitempty"`
	Answer   *ModelAnswer      `json:"answer,omitempty"` // has the call of an active step that is one
	Branches *Branches         `json:"branches,omitempty"`
	Exceeded *ExceededLimit    `json:"exceeded,omitempty"` // people are asked before the branches begin
	Sleep    time.Duration     `json:"sleep,omitempty"`
	Failed   *pipeline.Failure `json:"failed,omitempty"`
	// CallEnded tells that the call before ended and its activity made this advance, also if the workflow did not learn of it.
	CallEnded bool `json:"callEnded,omitempty"`
	// Value is the value of Advance.Expression.
	Value json.RawMessage `json:"value,omitempty"`
	// Usage is that of model calls which the workflow was not told of: of the step that failed, and of subagents on unfinished
	// lanes.
	Usage []Usage `json:"usage,omitempty"`
}

// Prefix begins the IDs of the steps of a program.
func (w *Position) Prefix() string {
	if w == nil || w.Number == 0 {
		return ""
	}
	return fmt.Sprintf("do/%d/", w.Number)
}

// IsEnd reports whether the pipeline has come to its end.
func (a Advanced) IsEnd() bool { return a.Active == nil && a.Branches == nil && a.Sleep == 0 }

// question returns the record with what the active step asks people; 0 = it asks nothing.
func (w *Position) question() uint64 {
	if w == nil || w.Active == nil || len(w.Active.Place.Prompts) == 0 {
		return 0
	}
	return w.Active.Place.Prompts[len(w.Active.Place.Prompts)-1]
}

// MaxValue bounds the value of an expression that a program asks for, in bytes of JSON.
const MaxValue = 8 << 10
