package agents

import (
	"encoding/json"
	"time"
)

// Step is a step of an agent that is a tree of them instead of a model. Exactly one of its kinds is set: Agent,
// Tool, Approve, Parallel, Map, Route, Loop, Set or Steps.
//
// Texts in Input, Args, Message and Value are templates: ${…} in them stands for the value of an expression in
// CEL. When, Until and Items are expressions themselves. All of them see input, messages, state, steps and
// caller; in a map its item and index, in a loop round, in steps that run after a failure error.
type Step struct {
	// Name is the step's address in its agent, and its output's in the state: [a-z][a-z0-9_-]{0,63}, each once,
	// and not model, tools or steps. Steps that compensate need none.
	Name string

	// When is a condition: the step is skipped where it is false. Empty = always. At most 4 KiB.
	When string

	// Agent is an agent that runs, either another one or one that stands here.
	Agent *AgentStep

	// Tool is the name of a tool that is called with Args, one of the agent's own.
	Tool string

	// Approve asks a person.
	Approve *ApproveStep

	// Parallel runs steps beside one another.
	Parallel *ParallelStep

	// Map runs steps once for each item of a list.
	Map *MapStep

	// Route runs the steps of the first case that applies.
	Route []Case

	// Loop runs steps again and again.
	Loop *LoopStep

	// Set changes the state.
	Set []Op

	// Steps run one after the other.
	Steps []Step

	// Input is a template: what the agent is asked, and all that it is told of the conversation. Empty = it is
	// told that. Of agents only.
	Input string

	// Output says what the agent has to answer; nil = any text. Of agents only.
	Output *Output

	// Args are the arguments of the tool, texts in them being templates. Of tools only.
	Args map[string]any

	// Retry has the step done again if it fails; nil = it is not.
	Retry *Retry

	// Timeout is how long the step may take, with all its tries. 0 = as long as it likes.
	Timeout time.Duration

	// OnError is what becomes of a failure.
	OnError OnError

	// Compensate undoes what the step has done, when the run fails later or is cancelled. It is a step without a
	// name and an output; nothing in it has compensations of its own.
	Compensate *Step
}

// AgentStep is an agent as a step. Either Name is set, or all else is what the agent is.
type AgentStep struct {
	// Name is that of another agent.
	Name string

	// What is not given is that of the agent whose step it is, but for Instructions and Tools.
	Model        string
	Reasoning    Reasoning
	Instructions string
	Tools        []string
	State        State
	Limits       Limits
}

// Output says what an agent has to answer.
type Output struct {
	// Schema is the JSON Schema of the answer, which is JSON. At most 256 KiB.
	Schema json.RawMessage

	// Repairs is how often the agent is told what is wrong with its answer, 0 to 10; nil = 2.
	Repairs *int

	// Native tells whether the provider of the agent's model is handed the schema, to hold the model to it. nil = if
	// it is the vendor's own and known to take it.
	Native *bool

	wrong error // why no schema could be made of a Go type
}

// ApproveStep is a question to a person. Who decides, and until when, is as in an [Approval].
type ApproveStep struct {
	// Message is a template: what people are asked. At most 4 KiB.
	Message string

	// Args are shown with it, and may be edited. Texts in them are templates.
	Args map[string]any

	// Rule says who decides and until when. It has no Tools and no When.
	Rule Approval
}

// ParallelStep runs steps beside one another.
type ParallelStep struct {
	// Steps are the branches, a step each, at most 64.
	Steps []Step

	// Concurrency is how many are under way at a time; 0 = all.
	Concurrency int

	// OnError is fail (the default), so that the first failure ends the others, or continue.
	OnError string
}

// MapStep runs steps once for each item of a list, beside one another.
type MapStep struct {
	// Items is an expression that is a list, of at most 10,000 items.
	Items string

	// As is the name of the variable that is the item: [a-z][a-zA-Z0-9_]{0,31}. Empty = item.
	As string

	// Concurrency is how many items are under way at a time, at most 100; 0 = 10.
	Concurrency int

	// OnError is fail (the default), so that the first failure ends the others, or continue.
	OnError string

	Steps []Step
}

// Case is a case of a route.
type Case struct {
	// When is a condition; empty = the case applies to whatever comes to it, which the last one may only.
	When  string `json:"when,omitempty"`
	Steps []Step `json:"steps"`
}

// LoopStep runs steps again and again.
type LoopStep struct {
	// Max is how often they run at most, 1 to 1,000. The loop is done then, whatever Until says.
	Max int `json:"max"`

	// Until is a condition that is looked at when they have run: true ends the loop. Empty = only Max does.
	Until string `json:"until,omitempty"`

	Steps []Step `json:"steps"`
}

// Op is one change of the state.
type Op struct {
	// Op is an operation of JSON Patch: add, remove, replace, move, copy or test. Empty = the value is put at the
	// path, whether or not something is there; a null that stands here, and is not computed, removes it.
	Op string

	// Path and From are JSON pointers.
	Path string
	From string

	// Value is JSON whose texts are templates.
	Value any
}

// Retry has a step done again.
type Retry struct {
	// Attempts is how often the step is tried, the first time too: 1 to 100.
	Attempts int

	// Interval is the pause before the second try, 1s if it is 0, and Backoff by what it grows with each
	// further one: 1 to 10, 2 if it is 0. Pauses are at most an hour long.
	Interval time.Duration
	Backoff  float64
}

// What may become of the failure of a branch.
const (
	OnErrorFail     = "fail"
	OnErrorContinue = "continue"
)

// OnError is what becomes of a failure when no try is left. The zero OnError lets what the step stands in fail too.
type OnError struct {
	// Continue goes on behind the step; its output is {"error": {"code", "message"}}.
	Continue bool

	// Steps run instead, and see error; then it goes on behind the step.
	Steps []Step
}

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
	maxAnswer      = 256 << 10 // an answer's schema
	maxBackoff     = 10

	// MaxItems bounds the items of a map.
	MaxItems = 10_000
	// MaxItemsCompensated bounds them where branches may have to be compensated for: a run knows the end of each.
	MaxItemsCompensated = 1000
	// MaxOutput bounds the output of a step, in bytes of JSON.
	MaxOutput = 1 << 20

	defaultConcurrency = 10
	defaultRepairs     = 2
	defaultBackoff     = 2
	defaultItem        = "item"
	maxPause           = time.Hour
)

// MaxRepairs is how often an agent is told what is wrong with its answer.
func (o *Output) MaxRepairs() int {
	if o.Repairs == nil {
		return defaultRepairs
	}
	return *o.Repairs
}

// Item is the name of the variable that is the item.
func (m *MapStep) Item() string {
	if m.As == "" {
		return defaultItem
	}
	return m.As
}

// AtOnce is how many items are under way at a time.
func (m *MapStep) AtOnce() int {
	if m.Concurrency == 0 {
		return defaultConcurrency
	}
	return m.Concurrency
}

// AtOnce is how many branches are under way at a time.
func (p *ParallelStep) AtOnce() int {
	if p.Concurrency == 0 {
		return len(p.Steps)
	}
	return p.Concurrency
}

// Pause is how long to wait after so many tries.
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
