package runs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// ReplaceEvent makes up for an event that says the call before was cut off, where it was not: what is under way now is
// cancelled in its place. Steps that are at their end, or compensate for a failure, are not.
func (w *Position) ReplaceEvent(next Advanced, event *pipeline.Event) {
	switch {
	case event.Kind != pipeline.EventCancelled:
	case next.IsEnd(), next.Cursor.Undoing != nil:
		w.End = nil
	default:
		w.Event = event
	}
}

// Position is how far an agent has come in its steps.
type Position struct {
	Cursor pipeline.Cursor `json:"cursor"`
	// Origin names the run that began the steps, and Input is that run's input: runs that go on with them have
	// others.
	Origin string `json:"origin"`
	Input  uint64 `json:"input,omitempty"`
	// Number is that of a program's step, and Tree the record that has it; 0 = the steps are the agent's.
	Number int    `json:"number,omitempty"`
	Tree   uint64 `json:"tree,omitempty"`
	// Child is what a subagent works for, if the steps are a subagent's.
	Child *Child `json:"child,omitempty"`
	// Items are the records that have the items of the branches which led here, one for each of the cursor's.
	Items []uint64 `json:"items,omitempty"`
	// Active is the agent or call that the walk has come to, Fan are the branches, Wake is when it goes on.
	Active   *ActiveStep `json:"active,omitempty"`
	Branches *Branches   `json:"branches,omitempty"`
	Wake     time.Time   `json:"wake,omitzero"`
	// Answer has the call of a leaf that is one, until that is made.
	Answer *ModelAnswer `json:"answer,omitempty"`
	// Event is what has come of that; nil = it is under way. Said is the message that an agent ended with.
	Event    *pipeline.Event `json:"event,omitempty"`
	Answered string          `json:"answered,omitempty"`
	// LastAnswer is the message with which the last agent has ended among the steps of a subagent: they may come to the call's
	// result, and it may be long ago.
	LastAnswer string `json:"lastAnswer,omitempty"`
	// Advances is how often this run has advanced.
	Advances int `json:"advances,omitempty"`
	// Exceeded is what people are to be asked before the branches of Fan begin.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
	// End is how the run ends when what was done is compensated for.
	End *PendingEnd `json:"end,omitempty"`
}

// PendingEnd is how a run ends.
type PendingEnd struct {
	Outcome Outcome `json:"outcome"`
	pipeline.Failure
}

// ActiveStep is a step that is an agent, a call or a question.
type ActiveStep struct {
	AgentRef           // the agent; of a call, the one whose rules it is under
	Place    StepPlace `json:"place"`
	// CallID is the call that is made; empty = the step is an agent. Lasts tells that there is something that compensates for
	// it: whether it was done has to be known, and a cancel lets it come to its end.
	CallID         string    `json:"callId,omitempty"`
	OutlastsCancel bool      `json:"outlastsCancel,omitempty"`
	Deadline       time.Time `json:"deadline,omitzero"`
	// Turns is how often the agent's model was called. Tokens and Cost are what it has used by now, with what worked for it.
	Turns  int   `json:"turns,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
}

// Advance asks for what comes next in a walk.
type Advance struct {
	Step
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	Position  Position  `json:"position"`
	// Now is the time by the clock that deadlines are measured with.
	Now time.Time `json:"now"`
	// Tree are the steps of a program, when it begins them. Expression is what it wants to know; nothing else
	// happens then.
	Tree       json.RawMessage `json:"tree,omitempty"`
	Expression string          `json:"expression,omitempty"`
	// Day is like that of a [ModelCall]: branches ask nobody, so it is asked before they begin.
	Day *DayAllowance `json:"day,omitempty"`
	// Resumes tells that the walk goes on in another run: the steps that it is in begin there again, and
	// nothing else happens.
	Resumes bool `json:"resumes,omitempty"`
	// Suspended are the calls for which a branch ends before its steps do.
	Suspended []string `json:"suspended,omitempty"`
	// Unfinished are those whose step did not finish, FailedStep is the one before this that did not.
	Unfinished []Lane      `json:"unfinished,omitempty"`
	FailedStep *FailedStep `json:"failedStep,omitempty"`
	// AfterCall is set by the activity of the call before, where that goes on by itself.
	AfterCall bool `json:"-"`
}

// Advanced is what comes next. With nothing set the steps are at their end.
type Advanced struct {
	Seq    uint64          `json:"seq"`
	Cursor pipeline.Cursor `json:"cursor"`
	Active *ActiveStep     `json:"active,omitempty"`
	// Prompts tells that the record has what the leaf is asked.
	Prompts  bool              `json:"prompts,omitempty"`
	Answer   *ModelAnswer      `json:"answer,omitempty"` // has the call of a leaf that is one
	Branches *Branches         `json:"branches,omitempty"`
	Exceeded *ExceededLimit    `json:"exceeded,omitempty"` // is to be asked about before the branches begin
	Sleep    time.Duration     `json:"sleep,omitempty"`
	Failed   *pipeline.Failure `json:"failed,omitempty"`
	// CallEnded tells that the call before has come to its end, and has found this out: also if that was not heard of.
	CallEnded bool `json:"callEnded,omitempty"`
	// Value is what an expression comes to.
	Value json.RawMessage `json:"value,omitempty"`
	// Usage is what model calls of the step that failed have used, and of subagents whose lanes were taken over.
	Usage []Usage `json:"usage,omitempty"`
}

// Prefix begins the ids of steps of a program's.
func (w *Position) Prefix() string {
	if w == nil || w.Number == 0 {
		return ""
	}
	return fmt.Sprintf("do/%d/", w.Number)
}

func (a Advanced) IsEnd() bool { return a.Active == nil && a.Branches == nil && a.Sleep == 0 }

// question is the record that has what the step asks that the walk is at; 0 = it asks nothing.
func (w *Position) question() uint64 {
	if w == nil || w.Active == nil || len(w.Active.Place.Prompts) == 0 {
		return 0
	}
	return w.Active.Place.Prompts[len(w.Active.Place.Prompts)-1]
}

// MaxValue bounds the value of an expression that a program asks for, in bytes of JSON.
const MaxValue = 8 << 10
