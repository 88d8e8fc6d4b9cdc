package agents

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Option is what any step may have: [When], [Timeout], a [Retry], [ContinueOnError], [OnErrorRun] and [Compensate].
type Option interface {
	AskOption
	ApproveOption
	BranchOption
	LoopOption
	change(*Step)
}

// AskOption is what [Ask] may have besides: [Schema], [Refine], [Repairs] and [Native].
type AskOption interface{ ask(*Step) }

// ApproveOption is what [Approve] may have besides: [Args] and an [Approval].
type ApproveOption interface{ question(*Step) }

// BranchOption is what [Map] and [Parallel] may have besides: [Branches].
type BranchOption interface{ branch(*Step) }

// LoopOption is what [Loop] may have besides: [Until].
type LoopOption interface{ round(*Step) }

// option may stand wherever a step is made.
type option func(*Step)

func (o option) change(s *Step)   { o(s) }
func (o option) ask(s *Step)      { o(s) }
func (o option) question(s *Step) { o(s) }
func (o option) branch(s *Step)   { o(s) }
func (o option) round(s *Step)    { o(s) }

// Condition is that of a step as an option, and of a case: [Condition.Then].
type Condition struct {
	option
	source string
}

// When skips the step where the condition is false.
func When(condition Value[bool]) Condition {
	source := condition.Expr()
	return Condition{func(s *Step) { s.When = source }, source}
}

// Timeout is how long the step may take, with all its tries.
func Timeout(d time.Duration) Option { return option(func(s *Step) { s.Timeout = d }) }

// ContinueOnError goes on behind the step if it fails; its output is {"error": {"code", "message"}} then. With
// [Map] and [Parallel] that is about the step as a whole; [Branches] are about its branches.
func ContinueOnError() Option {
	return option(func(s *Step) { s.OnError = OnError{Continue: true} })
}

// OnErrorRun runs other steps if the step fails, which see error; then it goes on behind the step.
func OnErrorRun(steps ...Stepper) Option {
	return option(func(s *Step) { s.OnError = OnError{Steps: Steps(steps).list()} })
}

// Compensate undoes what the step has done, when the run fails later or is cancelled. The name of what compensates is
// empty. [StepOf.With] has it look at what the step has put out.
func Compensate(with Stepper) Option {
	undo := with.AsStep()
	return option(func(s *Step) { s.Compensate = &undo })
}

func (r Retry) change(s *Step)   { s.Retry = &r }
func (r Retry) ask(s *Step)      { s.Retry = &r }
func (r Retry) question(s *Step) { s.Retry = &r }
func (r Retry) branch(s *Step)   { s.Retry = &r }
func (r Retry) round(s *Step)    { s.Retry = &r }

func (a Args) question(s *Step)     { s.Approve.Args = a.templates() }
func (a Approval) question(s *Step) { s.Approve.Rule = a }

// Branches are how those of [Map] and [Parallel] run.
type Branches struct {
	// Concurrency is how many are under way at a time; 0 = 10 of a map, and all of Parallel.
	Concurrency int

	// OnError is fail (the default), so that the first failure ends the others, or continue.
	OnError string
}

func (b Branches) branch(s *Step) {
	if s.Map != nil {
		s.Map.Concurrency, s.Map.OnError = b.Concurrency, b.OnError
		return
	}
	s.Parallel.Concurrency, s.Parallel.OnError = b.Concurrency, b.OnError
}

// Until ends a loop when the condition is true after a round.
func Until(condition Value[bool]) LoopOption { return until(condition.Expr()) }

type until string

func (u until) round(s *Step) { s.Loop.Until = string(u) }

type askOption func(*Output)

func (o askOption) ask(s *Step) {
	if s.Output == nil {
		s.Output = &Output{}
	}
	o(s.Output)
}

// Schema is the JSON Schema of the answer, instead of that of its Go type.
func Schema(schema json.RawMessage) AskOption {
	return askOption(func(o *Output) { o.Schema, o.wrong = schema, nil })
}

// Refine changes the schema of the answer, to say what a Go type cannot: enumerations, ranges, patterns.
func Refine(change func(schema *jsonschema.Schema)) AskOption {
	return askOption(func(o *Output) { o.refine(change) })
}

// Repairs is how often the agent is told what is wrong with its answer, 0 to 10; 2 without it.
func Repairs(n int) AskOption { return askOption(func(o *Output) { o.Repairs = &n }) }

// Native tells whether the provider of the agent's model is handed the schema of the answer. Without it, it is if it is
// the vendor's own and known to take it.
func Native(hand bool) AskOption { return askOption(func(o *Output) { o.Native = &hand }) }
