package agents

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Option is an option of every step: [When], [Timeout], a [Retry], [ContinueOnError], [OnErrorRun]
// and [Compensate].
type Option interface {
	AskOption
	ApproveOption
	BranchOption
	LoopOption
	change(*Step)
}

// AskOption is also an option of [Ask]: [Schema], [Refine], [Repairs] and [Native].
type AskOption interface{ ask(*Step) }

// ApproveOption is also an option of [Approve]: [Args] and an [Approval].
type ApproveOption interface{ question(*Step) }

// BranchOption is also an option of [Map] and [Parallel]: [Branches].
type BranchOption interface{ branch(*Step) }

// LoopOption is also an option of [Loop]: [Until].
type LoopOption interface{ round(*Step) }

// option is an option of every kind of step.
type option func(*Step)

func (o option) change(s *Step)   { o(s) }
func (o option) ask(s *Step)      { o(s) }
func (o option) question(s *Step) { o(s) }
func (o option) branch(s *Step)   { o(s) }
func (o option) round(s *Step)    { o(s) }

// Condition is the condition of a step, as an option, or of a case: [Condition.Then].
type Condition struct {
	option
	source string
}

// When skips the step if the condition is false.
func When(condition Value[bool]) Condition {
	source := condition.Expr()
	return Condition{func(s *Step) { s.When = source }, source}
}

// Timeout bounds the step with all its attempts.
func Timeout(d time.Duration) Option { return option(func(s *Step) { s.Timeout = d }) }

// ContinueOnError continues after the step if it fails; its output is then {"error": {"code",
// "message"}}. For [Map] and [Parallel] this concerns the whole step; [Branches] concerns its
// branches.
func ContinueOnError() Option {
	return option(func(s *Step) { s.OnError = OnError{Continue: true} })
}

// OnErrorRun runs other steps if the step fails, with the variable error. The pipeline then
// continues after the step.
func OnErrorRun(steps ...Stepper) Option {
	return option(func(s *Step) { s.OnError = OnError{Steps: Steps(steps).list()} })
}

// Compensate undoes the step if the run fails later or is cancelled. The compensation has no name.
// With [StepOf.With] it can refer to the step's output.
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

// Branches is how the branches of [Map] and [Parallel] run.
type Branches struct {
	// Concurrency is how many run concurrently; 0 = 10 of a map, and all of Parallel.
	Concurrency int

	// OnError is fail (the default: the first failure ends the other branches) or continue.
	OnError string
}

func (b Branches) branch(s *Step) {
	if s.Map != nil {
		s.Map.Concurrency, s.Map.OnError = b.Concurrency, b.OnError
		return
	}
	s.Parallel.Concurrency, s.Parallel.OnError = b.Concurrency, b.OnError
}

// Until ends a loop if the condition is true after a round.
func Until(condition Value[bool]) LoopOption { return until(condition.Expr()) }

// until is the option of [Until].
type until string

func (u until) round(s *Step) { s.Loop.Until = string(u) }

// askOption is an option of the output of [Ask].
type askOption func(*Output)

func (o askOption) ask(s *Step) {
	if s.Output == nil {
		s.Output = &Output{}
	}
	o(s.Output)
}

// Schema returns the JSON Schema of the answer, instead of the schema of its Go type.
func Schema(schema json.RawMessage) AskOption {
	return askOption(func(o *Output) { o.Schema, o.wrong = schema, nil })
}

// Refine changes the schema of the answer. It adds what a Go type cannot express: enumerations,
// ranges, patterns.
func Refine(change func(schema *jsonschema.Schema)) AskOption {
	return askOption(func(o *Output) { o.refine(change) })
}

// Repairs returns how often an invalid answer is sent back with its errors, 0 to 10; default 2.
func Repairs(n int) AskOption { return askOption(func(o *Output) { o.Repairs = &n }) }

// Native reports whether the model's provider gets the schema of the answer. By default it does if
// the endpoint is the vendor's own and known to support it.
func Native(hand bool) AskOption { return askOption(func(o *Output) { o.Native = &hand }) }
