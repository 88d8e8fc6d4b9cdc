package agents

import (
	"encoding/json"
	"time"
)

// Step is a step of a pipeline. Exactly one of its kinds is set: Agent, Tool, Approve, Parallel,
// Map, Route, Loop, Set or Steps.
//
// Strings in Input, Args, Message and Value are templates, in which ${…} stands for the value of a
// CEL expression. When, Until and Items are expressions. All of them have the variables input,
// messages, state, steps and caller; in a map also its item and index, in a loop round, and after a
// failure error.
type Step struct {
	// Name is the step's address in its agent, and the key of its output in the state:
	// [a-z][a-z0-9_-]{0,63}, each once, and not model, tools or steps. Compensations need no name.
	Name string

	// When is a condition; the step is skipped if it is false. "" = the step always runs. At most 4
	// KiB.
	When string

	// Agent is the agent to run: another one, or an inline one.
	Agent *AgentStep

	// Tool is the name of the tool to call with Args, one of the agent's tools.
	Tool string

	// Approve asks an approver for a decision.
	Approve *ApproveStep

	// Parallel runs steps concurrently.
	Parallel *ParallelStep

	// Map runs steps once for each item of a list.
	Map *MapStep

	// Route runs the steps of the first case that applies.
	Route []Case

	// Loop repeats steps.
	Loop *LoopStep

	// Set changes the state. Either all operations take effect, or none.
	Set []Op

	// Steps run in sequence.
	Steps []Step

	// Input is the prompt of an agent, a template. The agent gets it instead of the conversation.
	// Empty = it gets the conversation.
	Input string

	// Output is the form of the agent's answer; nil = any text. Only for agents.
	Output *Output

	// Args are the arguments of the tool; texts are templates. Only for tools.
	Args map[string]any

	// Hidden keeps the messages and tool calls of the step, and of the steps in it, from clients
	// and from the conversation of other steps. A call with an interrupt is shown.
	Hidden bool

	// Retry repeats a failed step; nil = no retry.
	Retry *Retry

	// Timeout bounds the step with all its attempts; 0 = unlimited.
	Timeout time.Duration

	// OnError is what happens after a failure.
	OnError OnError

	// Compensate undoes the step if the run fails later or is cancelled. It is a step without a
	// name and without an output. Steps in it have no compensations.
	Compensate *Step
}

// AgentStep is an agent as a step: the name of another agent, or an inline definition.
type AgentStep struct {
	// Name is the name of another agent.
	Name string

	// A field that is not set has the value of the pipeline, except for Instructions and Tools.
	Model        string
	Fallback     Fallback // its models are those after Model
	Reasoning    Reasoning
	Instructions string
	Tools        []string
	State        State
	Limits       Limits
}

// Output is the form of an agent's answer, or of the result of its runs.
type Output struct {
	// Schema is the JSON Schema of the answer, which is JSON. At most 256 KiB. Only an agent with
	// steps or a program may have none: its result may then be any value.
	Schema json.RawMessage

	// Value is the CEL expression of the result, over input, messages, state, steps and caller. It
	// is for agents with steps or a program only. "" = the output of the last step. At most 4 KiB.
	Value string

	// Repairs is how often an invalid answer is sent back with its validation errors, 0 to 10; nil
	// = 2.
	Repairs *int

	// Native is whether the model's provider gets the schema, to enforce it. nil = it does if the
	// endpoint is the vendor's own and known to support it.
	Native *bool

	schemaErr error // why a Go type has no schema; a validation error
}

// ApproveStep asks an approver for a decision, by a rule as in an [Approval].
type ApproveStep struct {
	// Message is a template of the text that approvers see. At most 4 KiB.
	Message string

	// Args are shown with the message, and may be edited. Texts are templates.
	Args map[string]any

	// Rule is who decides, and until when. It has no Tools and no When.
	Rule Approval
}

// ParallelStep runs steps concurrently.
type ParallelStep struct {
	// Steps are the branches, one step each, at most 64.
	Steps []Step

	// Concurrency is how many branches run concurrently; 0 = all.
	Concurrency int

	// OnError is fail (the default: the first failure ends the other branches) or continue.
	OnError string
}

// MapStep runs steps once for each item of a list, concurrently.
type MapStep struct {
	// Items is an expression whose value is a list of at most 10,000 items.
	Items string

	// As is the name of the variable with the item: [a-z][a-zA-Z0-9_]{0,31}. Empty = item.
	As string

	// Concurrency is how many items run concurrently, at most 100; 0 = 10.
	Concurrency int

	// OnError is fail (the default: the first failure ends the other branches) or continue.
	OnError string

	Steps []Step
}

// Case is a case of a route.
type Case struct {
	// When is a condition. Empty = always; only the last case may be so.
	When  string `json:"when,omitempty"`
	Steps []Step `json:"steps"`
}

// LoopStep repeats steps.
type LoopStep struct {
	// Max is the maximal number of rounds, 1 to 1,000. The loop then ends, whatever the value of
	// Until.
	Max int `json:"max"`

	// Until is a condition that is evaluated after each round: true ends the loop. Empty = only Max
	// ends it.
	Until string `json:"until,omitempty"`

	Steps []Step `json:"steps"`
}

// Retry repeats a failed step.
type Retry struct {
	// Attempts is the number of attempts with the first one: 1 to 100.
	Attempts int

	// Interval is the pause before the second attempt; 0 = 1s. Backoff is the factor of each
	// further pause: 1 to 10, 0 = 2. Pauses are at most an hour.
	Interval time.Duration
	Backoff  float64
}

// The values of ParallelStep.OnError and MapStep.OnError.
const (
	OnErrorFail     = "fail"
	OnErrorContinue = "continue"
)

// OnError is what happens after the failure of the last attempt. The zero OnError fails the
// enclosing step too.
type OnError struct {
	// Continue continues after the step; its output is {"error": {"code", "message"}}.
	Continue bool

	// Steps run instead, with the variable error. The pipeline then continues after the step.
	Steps []Step
}

// Bounds of steps. The exported ones are checked at run time.
const (
	maxTree        = 500 // steps of an agent
	maxTreeDepth   = 12
	maxBranches    = 64
	maxCases       = 64
	maxRounds      = 1000
	maxOps         = 64
	maxTries       = 100
	maxRepairs     = 10
	maxPath        = 400
	maxConcurrency = 100
	maxMessage     = 4 << 10
	maxSchema      = 256 << 10
	maxBackoff     = 10

	// MaxItems bounds the items of a map.
	MaxItems = 10_000
	// MaxItemsCompensated bounds the items if branches may have compensations: the run keeps the
	// end of each branch.
	MaxItemsCompensated = 1000
	// MaxOutput bounds the output of a step, in bytes of JSON.
	MaxOutput = 1 << 20

	defaultConcurrency = 10
	defaultRepairs     = 2
	defaultBackoff     = 2
	defaultItem        = "item"
	maxPause           = time.Hour
)

// MaxRepairs returns Repairs or its default.
func (o *Output) MaxRepairs() int {
	if o.Repairs == nil {
		return defaultRepairs
	}
	return *o.Repairs
}

// Item returns the name of the variable with the item.
func (m *MapStep) Item() string {
	if m.As == "" {
		return defaultItem
	}
	return m.As
}

// ConcurrencyOrDefault returns how many items run concurrently: Concurrency, or its default.
func (m *MapStep) ConcurrencyOrDefault() int {
	if m.Concurrency == 0 {
		return defaultConcurrency
	}
	return m.Concurrency
}

// ConcurrencyOrDefault returns how many branches run concurrently: Concurrency, or its default.
func (p *ParallelStep) ConcurrencyOrDefault() int {
	if p.Concurrency == 0 {
		return len(p.Steps)
	}
	return p.Concurrency
}

// Pause returns the pause after the attempt with a number, from 1: Interval times Backoff to the
// power of tries-1, at most an hour.
func (r *Retry) Pause(tries int) time.Duration {
	pause, backoff := float64(r.Interval), r.Backoff
	if pause == 0 {
		pause = float64(time.Second)
	}
	if backoff == 0 {
		backoff = defaultBackoff
	}
	for range tries - 1 {
		pause = min(pause*backoff, float64(maxPause))
	}
	return time.Duration(min(pause, float64(maxPause)))
}

// Stepper is a [Step], or a type that has one, such as [StepOf].
type Stepper interface{ AsStep() Step }

// AsStep returns the step itself.
func (s Step) AsStep() Step { return s }

// Steps are steps in sequence, or branches.
type Steps []Stepper

// list returns the steps as data.
func (s Steps) list() []Step {
	list := make([]Step, len(s))
	for i, inner := range s {
		list[i] = inner.AsStep()
	}
	return list
}
