package agents

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Option is an option of every kind of step: [When], [Timeout], a [Retry], [Hidden],
// [ContinueOnError], [OnErrorRun] and [Compensate]. The interfaces that it embeds let the compiler
// refuse options of other kinds.
type Option interface {
	AskOption
	ApproveOption
	BranchOption
	LoopOption
	apply(*Step)
}

// AskOption is an option of [Ask]: any Option, and [Schema], [Refine], [Repairs] and [Native].
type AskOption interface{ applyToAsk(*Step) }

// OutputOption is an option of [OutputOf] and [Ask]: [Schema], [Refine], [Repairs] or [Native].
type OutputOption interface {
	AskOption
	applyToOutput(*Output)
}

// ApproveOption is an option of [Approve]: any Option, [Args], and an [Approval].
type ApproveOption interface{ applyToApprove(*Step) }

// BranchOption is an option of [Map] and [Parallel]: any Option, and [Branches].
type BranchOption interface{ applyToBranches(*Step) }

// LoopOption is an option of [Loop]: any Option, and [Until].
type LoopOption interface{ applyToLoop(*Step) }

// option implements Option.
type option func(*Step)

func (o option) apply(s *Step)           { o(s) }
func (o option) applyToAsk(s *Step)      { o(s) }
func (o option) applyToApprove(s *Step)  { o(s) }
func (o option) applyToBranches(s *Step) { o(s) }
func (o option) applyToLoop(s *Step)     { o(s) }

// Condition is a condition: as an option of a step, or as that of a case, by [Condition.Then].
type Condition struct {
	option
	source string
}

// When returns the condition under which a step runs; otherwise the step is skipped.
func When(condition Value[bool]) Condition {
	source := condition.Expr()
	return Condition{func(s *Step) { s.When = source }, source}
}

// Timeout bounds the duration of a step with all its attempts.
func Timeout(d time.Duration) Option { return option(func(s *Step) { s.Timeout = d }) }

// ContinueOnError makes the run continue after the failure of the step, whose output is then
// {"error": {"code", "message"}}. For [Map] and [Parallel] it concerns the step as a whole;
// [Branches] concerns its branches.
func ContinueOnError() Option {
	return option(func(s *Step) { s.OnError = OnError{Continue: true} })
}

// Hidden keeps the messages and tool calls of a step, and of the steps in it, from clients and from
// the conversation of other steps. See the key visible of a step.
func Hidden() Option { return option(func(s *Step) { s.Hidden = true }) }

// OnErrorRun runs other steps if the step fails. They have the variable error. The run then
// continues after the step.
func OnErrorRun(steps ...Stepper) Option {
	return option(func(s *Step) { s.OnError = OnError{Steps: Steps(steps).list()} })
}

// Compensate runs a step that undoes this step if the run fails later or is cancelled. The
// compensation has no name. With [StepOf.With] it can refer to the step's own output.
func Compensate(compensation Stepper) Option {
	undo := compensation.AsStep()
	return option(func(s *Step) { s.Compensate = &undo })
}

func (r Retry) apply(s *Step)           { s.Retry = &r }
func (r Retry) applyToAsk(s *Step)      { s.Retry = &r }
func (r Retry) applyToApprove(s *Step)  { s.Retry = &r }
func (r Retry) applyToBranches(s *Step) { s.Retry = &r }
func (r Retry) applyToLoop(s *Step)     { s.Retry = &r }

func (a Args) applyToApprove(s *Step)     { s.Approve.Args = a.templates() }
func (a Approval) applyToApprove(s *Step) { s.Approve.Rule = a }

// Branches configures the branches of [Map] and [Parallel].
type Branches struct {
	// Concurrency is how many branches run concurrently; 0 = 10 for Map, and all for Parallel.
	Concurrency int

	// OnError is fail (the default: the first failure ends the other branches) or continue.
	OnError string
}

func (b Branches) applyToBranches(s *Step) {
	if s.Map != nil {
		s.Map.Concurrency, s.Map.OnError = b.Concurrency, b.OnError
		return
	}
	s.Parallel.Concurrency, s.Parallel.OnError = b.Concurrency, b.OnError
}

// Until ends a loop when the condition is true after a round.
func Until(condition Value[bool]) LoopOption { return until(condition.Expr()) }

// until is the option of [Until].
type until string

func (u until) applyToLoop(s *Step) { s.Loop.Until = string(u) }

// askOption is an option of an output.
type askOption func(*Output)

func (o askOption) applyToAsk(s *Step) {
	if s.Output == nil {
		s.Output = &Output{}
	}
	o(s.Output)
}

func (o askOption) applyToOutput(output *Output) { o(output) }

// Schema sets the JSON Schema of the answer, instead of the schema of its Go type.
func Schema(schema json.RawMessage) OutputOption {
	return askOption(func(o *Output) { o.Schema, o.schemaErr = schema, nil })
}

// Refine changes the schema of the answer. It can add what a Go type cannot express: enumerations,
// ranges, patterns.
func Refine(change func(schema *jsonschema.Schema)) OutputOption {
	return askOption(func(o *Output) { o.refine(change) })
}

// Repairs sets how often an invalid answer is sent back with its validation errors, 0 to 10;
// default 2.
func Repairs(n int) OutputOption { return askOption(func(o *Output) { o.Repairs = &n }) }

// Native sets whether the model's provider gets the schema of the answer. By default it gets the
// schema if the endpoint is the vendor's own and known to support it.
func Native(native bool) OutputOption { return askOption(func(o *Output) { o.Native = &native }) }
