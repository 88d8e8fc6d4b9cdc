package agents

import (
	"strings"
	"time"
)

// Definition is what an agent is. It is data: copy it, change the copy, and its
// [Definition.Revision] tells them apart. A definition from Parse or Decode is
// valid and complete; one made in Go is so after Validate.
type Definition struct {
	// Name is the agent's address: [a-z0-9][a-z0-9_-]{0,63}.
	Name string `json:"name" yaml:"name"`

	// Description is for people who choose an agent. Optional, at most 4 KiB.
	Description string `json:"description,omitempty" yaml:"description,omitempty"`

	// Model is provider/model, such as openai/gpt-5-mini. An agent that consists of Steps has none of its own:
	// then it is that of the agents that stand in the steps and name no other.
	Model string `json:"model,omitempty" yaml:"model,omitempty"`

	// Reasoning is how the model thinks.
	Reasoning Reasoning `json:"reasoning,omitzero" yaml:"reasoning,omitempty"`

	// Instructions are the system prompt. Optional, at most 256 KiB.
	Instructions string `json:"instructions,omitempty" yaml:"instructions,omitempty"`

	// Tools are names of tools, or patterns with * for any run of characters,
	// in the order in which the model is offered them; agent:name is an agent that this one may
	// hand work to, handoff:name one that it may hand its thread over to. Each only once, at most 256.
	Tools []string `json:"tools,omitempty" yaml:"tools,omitempty"`

	// Steps are what the agent does, instead of what its model would: at most 500 of them, 12 deep.
	Steps []Step `json:"steps,omitempty" yaml:"steps,omitempty"`

	// Workflow is the name of the program that the agent is, as the workers have it registered; then it has
	// neither steps nor a model of its own, but for those of the agents in the program's steps.
	Workflow string `json:"workflow,omitempty" yaml:"workflow,omitempty"`

	// Approvals are the calls that a person decides about. At most 32 rules.
	Approvals []Approval `json:"approvals,omitempty" yaml:"approvals,omitempty"`

	// State is how the agent uses the state that it shares with its clients.
	State State `json:"state,omitzero" yaml:"state,omitempty"`

	// Context is how much of the conversation the model is told.
	Context Context `json:"context,omitzero" yaml:"context,omitempty"`

	// Limits is how far a run may go.
	Limits Limits `json:"limits,omitzero" yaml:"limits,omitempty"`

	// History says how the messages of a run's input relate to the thread's: auto (the default), append or replace. An
	// input may say otherwise, in forwardedProps.perdure.history.
	History string `json:"history,omitempty" yaml:"history,omitempty"`

	// OnNewInput is what becomes of an input that leaves questions open: reject (the default) or queue.
	OnNewInput string `json:"onNewInput,omitempty" yaml:"onNewInput,omitempty"`

	// OnMissingToolResult is what becomes of an input without results for calls of the client's tools:
	// abandon (the default), reject or queue.
	OnMissingToolResult string `json:"onMissingToolResult,omitempty" yaml:"onMissingToolResult,omitempty"`

	// LegacyInterrupts also asks clients that know no interrupts but the custom event on_interrupt, and takes their
	// answers.
	LegacyInterrupts bool `json:"legacyInterrupts,omitempty" yaml:"legacyInterrupts,omitempty"`
}

// Limits bounds a run. In Go, a field that is zero has its default; in a file, a
// limit of zero is an error, because its author will have meant something else by it.
type Limits struct {
	// Turns is how often the model may be called. Default 30.
	Turns int `json:"turns,omitempty" yaml:"turns,omitempty"`

	// Tokens is how many tokens all calls of the model may use together, both
	// read and written. Default 400,000.
	Tokens int64 `json:"tokens,omitempty" yaml:"tokens,omitempty"`

	// Duration is how long the run may take; as text it is a Go duration such
	// as 90s or 2h. Default 2h.
	Duration time.Duration `json:"duration,omitempty" yaml:"duration,omitempty"`

	// ParallelTools is how many tools the model may call in one turn, 1 to 512. Up to eight of them
	// are under way at a time. Default 8.
	ParallelTools int `json:"parallelTools,omitempty" yaml:"parallelTools,omitempty"`

	// Cost is what all calls of the model may cost together, in the currency of the worker's prices. A model that
	// has no price is not called then. 0 = whatever it costs.
	Cost Money `json:"cost,omitempty" yaml:"cost,omitempty"`

	// Soft are limits at which people are asked whether the run may go on; nil = nobody is. Not of agents that stand in steps.
	Soft *SoftLimits `json:"soft,omitempty" yaml:"soft,omitempty"`
}

// DefaultLimits returns the limits of an agent that says nothing about them.
func DefaultLimits() Limits {
	return Limits{Turns: 30, Tokens: 400_000, Duration: 2 * time.Hour, ParallelTools: 8}
}

// orDefault fills in the limits that were not given.
func (l Limits) orDefault() Limits { return l.or(DefaultLimits()) }

// or fills in the limits that were not given with others.
func (l Limits) or(other Limits) Limits {
	if l.Turns == 0 {
		l.Turns = other.Turns
	}
	if l.Tokens == 0 {
		l.Tokens = other.Tokens
	}
	if l.Duration == 0 {
		l.Duration = other.Duration
	}
	if l.ParallelTools == 0 {
		l.ParallelTools = other.ParallelTools
	}
	if l.Cost == 0 {
		l.Cost = other.Cost
	}
	return l
}

// ModelProvider splits Model at its first slash: a model's own name may have more.
func (d *Definition) ModelProvider() (provider, model string) {
	provider, model, _ = strings.Cut(d.Model, "/")
	return provider, model
}
