package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// ChainedAdvance is the advance behind a call, for the activity that makes it: what is not the call's own.
type ChainedAdvance struct {
	// ID is that of the advance.
	ID string `json:"step"`
	// Position is how far the walk has come, but for the leaf, which is the call, and for what has come of it.
	Position Position `json:"walk"`
	// Now is when the call was asked for, by the clock that deadlines are measured with.
	Now time.Time `json:"now"`
	// Day is the advance's.
	Day *DayAllowance `json:"day,omitempty"`
}

// Advance is what the call goes on with when it has come to its end. opened is the last record of the lane that the agent
// speaks on.
func (c ToolCall) Advance(opened uint64, now time.Time) Advance {
	in := Advance{Step: c.Step, Position: c.Chained.Position, Now: now, Day: c.Chained.Day, AfterCall: true}
	in.ID, in.Turn, in.Name, in.Closes, in.After, in.Place = c.Chained.ID, 0, "", c.Name, opened, nil
	in.Position.Active = &ActiveStep{AgentRef: AgentRef{Agent: c.Agent, Revision: c.Revision}, Place: *c.Place, CallID: c.CallID}
	in.Position.Event = &pipeline.Event{Kind: pipeline.EventDone}
	return in
}

// ToolCall asks for one tool call.
type ToolCall struct {
	// Step.ID is the call's own; Open is that of the step which all calls of the turn share.
	Step
	Open string `json:"open"`
	// Lane is the slot that the call writes to, LaneAfter its last record; 0 = what stands there is older than
	// After, if anything does.
	Lane      int    `json:"lane"`
	LaneAfter uint64 `json:"laneAfter,omitempty"`
	// CallID names the call; it is empty if the answer did not, and Index, its place in the message,
	// tells which one it is.
	CallID    string `json:"callId,omitempty"`
	Index     int    `json:"index,omitempty"`
	MessageID string `json:"messageId"`
	// Decision is what came of it that the call had to wait.
	Decision *Decision `json:"decision,omitempty"`
	// Question is the record with the question that the call has asked and that is decided, if it is made anew.
	Question uint64   `json:"raised,omitempty"`
	OnExpiry OnExpiry `json:"onExpiry,omitempty"`
	// HandOverTo is the agent that the call hands the thread over to.
	HandOverTo string `json:"handsTo,omitempty"`
	// Votes are those of the people who approved before the decision, Remember is the rule under which it is
	// to be remembered, by its digest.
	Votes    []Vote `json:"votes,omitempty"`
	Remember string `json:"remember,omitempty"`
	// Cancelled tells that the run was cancelled before the call began: what was decided about it is written down, and
	// the tool is not called.
	Cancelled bool `json:"cancelled,omitempty"`
	// OutlastsCancel tells that a cancel lets the call come to its end, once it has begun: it is compensated for then.
	OutlastsCancel bool `json:"lasts,omitempty"`
	// Chained is set in the call of a step where nothing but an advance can come behind it.
	Chained *ChainedAdvance `json:"onward,omitempty"`
	// Opens is set in the calls that a run begins with.
	Opens *Beginning `json:"opens,omitempty"`
	// Announces is set in those that a subagent begins with: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
}

// ToolAnswer tells how a tool call ended; the result is in the log.
type ToolAnswer struct {
	Outcome Outcome `json:"outcome"`
	// Seq is the lane's last record, Opened that of the lane which the agent speaks on.
	Seq    uint64 `json:"seq"`
	Opened uint64 `json:"opened"`
	// HandedOver tells that the thread is the other agent's.
	HandedOver bool `json:"handedOver,omitempty"`
	// Usage and Subagents are what a subagent has used, with those below it, and how many they were.
	Usage     []Usage `json:"usage,omitempty"`
	Subagents int     `json:"subagents,omitempty"`
	// Question is set if the call waits for an answer.
	Question *AskedQuestion `json:"raised,omitempty"`
	// Suspended is a subagent that waits for people, and Waits what for.
	Suspended  *SuspendedChild `json:"suspended,omitempty"`
	Interrupts *Interrupts     `json:"waits,omitempty"`
	// Failed is why a branch failed, Done tells that one which did not has done something that may have to be
	// compensated for.
	Failed              *pipeline.Failure `json:"failed,omitempty"`
	MayNeedCompensation bool              `json:"done,omitempty"`
	// Advanced is what comes next, if the activity has gone on as it was asked to.
	Advanced *Advanced `json:"advanced,omitempty"`
}

// AwaitQueue asks to wait for workers of a task queue. It fails when there are none for long.
type AwaitQueue struct {
	Queue string `json:"queue"`
}

// StoreResult asks to put a ToolResult, which comes along, into the log. The answer is the Decision.
type StoreResult struct {
	Run Ref `json:"run"`
}

// DigestArgs is what arguments are compared by, between what was decided about and what is executed.
func DigestArgs(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return hex.EncodeToString(sum[:16])
}

// AskedQuestion is how a call has ended that waits for an answer.
type AskedQuestion struct {
	CallID string `json:"call"`
	Tool   string `json:"tool"`
	// Number counts the questions of the call, from 1.
	Number int `json:"number"`
	// Expires is how long there is to answer; 0 = for ever.
	Expires time.Duration `json:"expires,omitempty"`
}

// ToolResult is what SignalToolResult carries, for whoever has nothing but Temporal's own tools: what came
// of a call of the client's. It is the one content that enters a history, at most MaxPayload of it; an
// activity puts it into the log, and from there on it is a decision like any other.
type ToolResult struct {
	CallID string `json:"toolCallId"`
	// Content is a text, or parts as AG-UI has them.
	Content json.RawMessage `json:"content"`
	// Error says why the call failed, if it did.
	Error json.RawMessage `json:"error,omitempty"`
}
