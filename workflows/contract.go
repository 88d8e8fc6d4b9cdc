package workflows

import (
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// TaskQueue is the queue of workflows and activities alike: on the workflow's own queue activities
// start eagerly, without a round trip.
const TaskQueue = "perdure"

// Names as Temporal knows them. They stand in histories: never change one, add a version.
const (
	TypeRun                = "agent.run.v1"
	TypeChild              = "agent.branch.v1"
	TypeParked             = "thread.parked.v1"
	TypeDelivery           = "webhook.deliver.v1"
	TypeNotices            = "approval.notices.v1"
	TypeFire               = "schedule.fire.v1"
	ActivityCallModel      = "model.call.v1"
	ActivityCallTool       = "tool.call.v1"
	ActivityFinish         = "run.finish.v1"
	ActivityAnswerCall     = "branch.answer.v1"
	ActivityNotify         = "approval.notify.v1"
	ActivityAnnounce       = "run.hold.v1"
	ActivityStoreResult    = "tool.result.v1"
	ActivityAwaitQueue     = "queue.await.v1"
	ActivityAdvance        = "steps.advance.v1"
	ActivityLimitInterrupt = "limit.ask.v1"
	ActivityDeliver        = "webhook.send.v1"
	ActivityFire           = "schedule.run.v1"
	ActivityRunStatus      = "schedule.look.v1"
	ActivityCancelRun      = "schedule.cancel.v1"
	UpdateSubmit           = "submit"
	UpdateSteer            = "steer"
	UpdatePause            = "pause"
	UpdateResume           = "resume"
	UpdateDecide           = "decide"
	SignalCancel           = "cancel"
	SignalToolResult       = "tool_result"
	SignalEnded            = "ended"
)

// RunRef names a run and its address.
type RunRef struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	ID     string `json:"run"`
}

// with returns another run of the same thread.
func (r RunRef) with(id string) RunRef {
	r.ID = id
	return r
}

// logged returns the attributes of a log line about the run, and more of them. An empty agent is unknown.
func (r RunRef) logged(agent string, more ...any) []any {
	attrs := []any{"tenant", r.Tenant, "thread", r.Thread, "run", r.ID}
	if agent != "" {
		attrs = append(attrs, "agent", agent)
	}
	return append(attrs, more...)
}

// Limits end a run that goes too far, with an error whose code names the limit.
type Limits struct {
	Turns         int           `json:"turns"`
	Tokens        int64         `json:"tokens"`
	Duration      time.Duration `json:"duration"`
	ParallelTools int           `json:"parallelTools"`
	// Cost is in millionths of the currency of the worker's prices; 0 = whatever it costs.
	Cost int64 `json:"cost,omitempty"`
	// Soft is set in those of a run that asks people before it goes further.
	Soft *SoftLimits `json:"soft,omitempty"`
}

// RunInput starts TypeRun.
type RunInput struct {
	Run      RunRef `json:"run"`
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// Input is the sequence of the proposed input in the log, Digest that of its decoded content.
	Input  uint64 `json:"input"`
	Digest string `json:"digest"`
	Limits Limits `json:"limits"`
	// Token is the run's name in search attributes. It is set in a run that waits in a Queue, whose
	// execution does not begin with attributes of its own.
	Token string `json:"token,omitempty"`

	// ParkAfter is how long the run waits for a person before it is parked. 0 = DefaultParkAfter.
	ParkAfter time.Duration `json:"parkAfter,omitempty"`

	// Trace is the W3C trace context of the request that asked for the run, as the header traceparent has it. An execution
	// that continues another one takes it for its own: the run before may be another one.
	Trace string `json:"trace,omitempty"`

	// Fire is the workflow that is told when the run is over, with all that goes on for it: that of the time
	// of a schedule at which it began.
	Fire string `json:"fire,omitempty"`

	// Steps tells that the agent consists of steps, Program which program it is; "" = none.
	Steps   bool   `json:"steps,omitempty"`
	Program string `json:"program,omitempty"`
	// Hold keeps the run open while calls of its turns wait.
	Hold bool `json:"hold,omitempty"`
	// OnNewInput is what becomes of an input that leaves questions open, behind the run's end; none is
	// OnOpenReject. OnMissing is the same for results of the client's tools; none is that of runs which
	// do not wait for such results.
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissing,omitempty"`

	// HandedOver is set in a run whose thread was handed over to its agent while it was under way or waited.
	HandedOver *HandoverTrail `json:"handed,omitempty"`
	// Resume is set in a run that goes on with calls of the one before it: all are decided.
	Resume *Interrupts `json:"resume,omitempty"`
	// Continues is the run before, in a run that nobody asked for: it has no input.
	Continues string `json:"continues,omitempty"`
	// Cancelled is set in a run that goes on for one that was cancelled on its way to end with questions.
	Cancelled bool `json:"cancelled,omitempty"`
	// AnswersOnly is set in a run that only answers what was decided without it: there is nothing to do.
	AnswersOnly bool `json:"late,omitempty"`
	// Progress is set where an execution goes on with the run of the one before it.
	Progress *Progress `json:"progress,omitempty"`
	// Queue are the runs that wait for their turn on the thread, each without a queue of its own.
	Queue []RunInput `json:"queue,omitempty"`
}

// TraceParent returns the trace context of the request that asked for the run; "" = none.
func (in RunInput) TraceParent() string { return in.Trace }

// DefaultParkAfter is how long a run waits in the workflow that runs it. Longer waits are those of the
// night and the weekend: they move to TypeParked, which costs a continuation in each direction.
const DefaultParkAfter = 10 * time.Minute

// ParkedInput starts TypeParked: a thread whose run waits for a person.
type ParkedInput struct {
	Run RunInput `json:"run"` // with its progress, unless it has ended
	// Interrupts is what the thread waits for behind the end of the run.
	Interrupts *Interrupts `json:"waits,omitempty"`
}

// TraceParent returns the trace context of the request that asked for the run; "" = none.
func (p ParkedInput) TraceParent() string { return p.Run.Trace }

// Progress is how far a run has come when it continues as new.
type Progress struct {
	// Execution is the one that began the run: the log knows the run as its.
	Execution string `json:"execution"`
	Turn      int    `json:"turn"` // the next
	Paused    bool   `json:"paused,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"` // it was, while it was parked
	Positions
	Steering
	Budget
	Subagents int `json:"subagents,omitempty"` // that have worked
	Handoffs  int `json:"handoffs,omitempty"`  // of the run
	Replies   int `json:"replies,omitempty"`   // that have come to a subagent
	// Held is what the run waits for in a turn that has not ended.
	Held     *Interrupts `json:"held,omitempty"`
	Position *Position   `json:"walk,omitempty"`
}

// RunResult is how a run ended, as its terminal record says.
type RunResult struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`
	Seq     uint64  `json:"seq"`
}

// Outcome of a run or a step.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeInterrupt Outcome = "interrupt"
	// OutcomeFenced is that of an execution whose run belongs to another one: it has no effect.
	OutcomeFenced Outcome = "fenced"
)

// Step is what every activity is told about its place in the run.
type Step struct {
	Run       RunRef `json:"run"`
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// ID is the same for every attempt of the step and for no other step of the run.
	ID   string `json:"step"`
	Turn int    `json:"turn"`
	// Name is what STEP_STARTED says; Closes is the step whose STEP_FINISHED rides along.
	Name   string `json:"name"`
	Closes string `json:"closes,omitempty"`
	// After is the last record of the lane that the agent speaks on.
	After uint64 `json:"after"`
	// Child is set in the steps of a subagent, At in those of an agent or call that is a step of another agent.
	Child *Child     `json:"branch,omitempty"`
	Place *StepPlace `json:"at,omitempty"`
	// Compensates tells that the step compensates for another: that the run was cancelled does not stop it.
	Compensates bool `json:"undoes,omitempty"`
}

// ModelCall asks for one call of the agent's model.
type ModelCall struct {
	Step
	// Beginning is set in a run's first step.
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	// Steered are the proposals, by sequence, of what people have said since the last call.
	Steered []uint64 `json:"steered,omitempty"`
	// Handoffs is how often the run has handed its thread over.
	Handoffs int `json:"handoffs,omitempty"`
	// Priced tells that only models may be called that have a price.
	Priced bool `json:"priced,omitempty"`
	// Day is set in calls of a run that asks people when its tenant has used up the soft budget of a day: how far they
	// have let it go. nil = nobody is asked.
	Day *DayAllowance `json:"day,omitempty"`
}

// ModelAnswer tells what the model decided, by reference.
type ModelAnswer struct {
	Outcome   Outcome `json:"outcome"`
	Seq       uint64  `json:"seq"`
	MessageID string  `json:"messageId,omitempty"`
	Finish    string  `json:"finish,omitempty"`
	// Calls are the tool calls of the message, in order, up to MaxCalls of them; CallCount is how many
	// there are if they are more. Their arguments are in the log.
	Calls     []Call `json:"calls,omitempty"`
	CallCount int    `json:"callCount,omitempty"`
	// WaitCount is how many calls wait, for the client or a person. All of those have to be named.
	WaitCount int `json:"waitCount,omitempty"`
	// OrderedCount is how many calls have a Queue or a Sequence. All of those have to be named, too.
	OrderedCount int `json:"placeCount,omitempty"`
	// Subagents are the agents that calls hand work to.
	Subagents []AgentRef `json:"delegates,omitempty"`
	// Handoff is the call that hands the thread over.
	Handoff *Handoff `json:"handoff,omitempty"`
	Usage   Usage    `json:"usage"`
	// OtherUsage is what other model calls of the step have used: summaries, and attempts that did not finish.
	OtherUsage []Usage `json:"more,omitempty"`
	// Exceeded is set, and nothing of the above, if the model was not called: people are to be asked about it first.
	Exceeded *ExceededLimit `json:"excess,omitempty"`
}

// MaxCalls bounds the calls that an answer names; the others are known by their place in the message.
const MaxCalls = 64

// count is how many calls the answer makes.
func (a ModelAnswer) count() int { return max(a.CallCount, len(a.Calls)) }

// Call is one tool call. Tool is empty if the name is not one of ours: the client's, or made up.
type Call struct {
	ID   string `json:"id"`
	Tool string `json:"tool,omitempty"`
	// Client: the client runs the tool, when the AG-UI run has ended.
	Client bool `json:"client,omitempty"`
	// Subagent is the agent that the call hands work to, counted from 1; 0 = the call is a tool's.
	Subagent int `json:"delegate,omitempty"`
	// Approval: a person decides before the call is made.
	Approval *Approval `json:"approval,omitempty"`
	// Queue is the task queue that the call goes to; empty = TaskQueue.
	Queue string `json:"queue,omitempty"`
	// Sequence is the same in calls of the message that are made one after another; 0 = the call waits for
	// none.
	Sequence int `json:"sequence,omitempty"`
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

// Beginning is what a run's first record is made of.
type Beginning struct {
	// Input and Digest are those of the accepted input; none in a run that nobody asked for, which goes on
	// behind the run Continues.
	Input     uint64 `json:"input,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Edits tells that calls are made with other arguments than clients have seen.
	Edits bool `json:"edits,omitempty"`
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

// AnnounceInterrupts asks to tell what a run waits for that goes on afterwards. The answer is the sequence of the main
// lane's last record.
type AnnounceInterrupts struct {
	Step
	Interrupts *Interrupts `json:"waits"`
	// Concurrent tells that it stands on a lane of its own, since others are under way: that lane's last record is the answer.
	Concurrent bool `json:"aside,omitempty"`
}

// AwaitQueue asks to wait for workers of a task queue. It fails when there are none for long.
type AwaitQueue struct {
	Queue string `json:"queue"`
}

// StoreResult asks to put a ToolResult, which comes along, into the log. The answer is the Decision.
type StoreResult struct {
	Run RunRef `json:"run"`
}

// Finish asks for the run's terminal record.
type Finish struct {
	Run       RunRef  `json:"run"`
	Execution string  `json:"execution"`
	After     uint64  `json:"after"`
	Outcome   Outcome `json:"outcome"`
	Code      string  `json:"code,omitempty"`
	Message   string  `json:"message,omitempty"` // never content
	// Detail is the record of the log with what RUN_ERROR says besides the message; 0 = none.
	Detail uint64  `json:"detail,omitempty"`
	Usage  []Usage `json:"usage,omitempty"`
	// Interrupts is what the run ends with: calls that the client is to make, and questions.
	Interrupts *Interrupts `json:"waits,omitempty"`
	// Steered is what people said that no model call was told, since the run ends before.
	Steered []uint64 `json:"steered,omitempty"`
	// The beginning and Agent serve a run that ends before its first step began.
	Beginning
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// HandedOver tells that this is another agent than the run has begun with.
	HandedOver bool `json:"handed,omitempty"`
	// Answers tells that the run's input has answered what its thread had waited for.
	Answers bool `json:"answers,omitempty"`
	// First is the id of the run's first step.
	First string `json:"first,omitempty"`
	// Unfinished are those whose step did not finish.
	Unfinished []Lane `json:"lanes,omitempty"`
}

// MaxLanes is how many tool calls of a run are under way at a time, each on a lane of its own.
const MaxLanes = 8

// Lane is a tool lane and the last record that is known of it.
type Lane struct {
	Index int    `json:"lane"`
	After uint64 `json:"after"`
	// Subagent tells that a subagent worked for the call, Fork that it was a branch, which works for none.
	Subagent bool `json:"subagents,omitempty"`
	Branch   bool `json:"fork,omitempty"`
}

// Finished is the terminal record that stands, which may be an earlier one.
type Finished struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`
	Seq     uint64  `json:"seq"`
	// AskedAt and Expires are set if the record was there before, and asks people: when it did, and until when they
	// may decide, by call.
	AskedAt time.Time            `json:"askedAt,omitzero"`
	Expires map[string]time.Time `json:"expires,omitempty"`
}

// Error types: how activities and updates tell the workflow and the api what went wrong. The codes
// of model errors (llm.Code) are used as they are.
const (
	// ErrorFenced: the run or the lane is in other hands.
	ErrorFenced = "fenced"
	// ErrorLogLost: the log lacks what the workflow knows it had.
	ErrorLogLost = "log_lost"
	// ErrorBusy refuses a Submit: another run is active. Its detail is an Active.
	ErrorBusy = "busy"
	// ErrorQueueFull refuses a Submit: too many runs wait.
	ErrorQueueFull = "queue_full"
	// ErrorNotActive refuses a Pause and a Steer: the run waits, or is over.
	ErrorNotActive = "not_active"
	// ErrorInterrupted refuses a Submit: the thread waits for decisions that it does not bring. Its detail
	// is an Active.
	ErrorInterrupted = "interrupted"
	// ErrorMissingResults refuses a Submit: the thread waits for results of the client's tools that it does
	// not bring. Its detail is an Active.
	ErrorMissingResults = "missing_results"
	// ErrorTooMuchSteering refuses a Steer: the run has taken as many as it can.
	ErrorTooMuchSteering = "too_much_steering"
	// ErrorRunIDReused refuses a Submit: the active run has this id and another input.
	ErrorRunIDReused = "run_id_reused"
)

// FailureDetail is the detail of an activity's error: the record of the log that keeps what must not be in a history.
type FailureDetail struct {
	Record uint64 `json:"record"`
}

// Active is the detail of an ErrorBusy, an ErrorInterrupted and an ErrorMissingResults.
type Active struct {
	RunID string `json:"run"`
	// Waiting are the calls that the run waits for.
	Waiting []string `json:"waiting,omitempty"`
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

// CodeInternal is for what should not happen.
const CodeInternal = "internal"
