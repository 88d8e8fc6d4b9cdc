package agents

import (
	"strings"
	"time"
)

// Definition is the definition of an agent. It is data: copy it and change the copy; its [Definition.Revision] differs then. A definition from Parse or Decode
// is valid and complete; one made in Go is so after Validate.
type Definition struct {
	// Name is the agent's name in URLs and other definitions: [a-z0-9][a-z0-9_-]{0,63}.
	Name string `json:"name" yaml:"name"`

	// Description is for people, and for models that may call the agent. Optional, at most 4 KiB.
	Description string `json:"description,omitempty" yaml:"description,omitempty"`

	// Model is provider/model, such as openai/gpt-5-mini. In an agent with Steps it is the model of the inline agents that have none.
	Model string `json:"model,omitempty" yaml:"model,omitempty"`

	// Reasoning is how much the model reasons.
	Reasoning Reasoning `json:"reasoning,omitzero" yaml:"reasoning,omitempty"`

	// Instructions are the system prompt. Optional, at most 256 KiB.
	Instructions string `json:"instructions,omitempty" yaml:"instructions,omitempty"`

	// Tools are names of tools, or patterns with * as a wildcard, in the order in which the model is offered them. agent:name is a subagent, handoff:name an
	// agent that the thread may be handed over to. Each at most once, at most 256.
	Tools []string `json:"tools,omitempty" yaml:"tools,omitempty"`

	// Steps are the steps of a pipeline, instead of a model: at most 500, 12 deep.
	Steps []Step `json:"steps,omitempty" yaml:"steps,omitempty"`

	// Workflow is the registered name of the agent's program. Then the agent has no steps, and its model is that of agents in the program's steps.
	Workflow string `json:"workflow,omitempty" yaml:"workflow,omitempty"`

	// Approvals are the rules for calls that a person decides about. At most 32.
	Approvals []Approval `json:"approvals,omitempty" yaml:"approvals,omitempty"`

	// State is how the agent uses the state that it shares with its clients.
	State State `json:"state,omitzero" yaml:"state,omitempty"`

	// Context bounds the part of the conversation that the model gets.
	Context Context `json:"context,omitzero" yaml:"context,omitempty"`

	// Limits bounds each run.
	Limits Limits `json:"limits,omitzero" yaml:"limits,omitempty"`

	// History is how the messages of a run's input relate to the thread's: auto (the default), append or replace. An input may override it in
	// forwardedProps.perdure.history.
	History string `json:"history,omitempty" yaml:"history,omitempty"`

	// OnNewInput is what happens to an input that leaves interrupts open: reject (the default) or queue.
	OnNewInput string `json:"onNewInput,omitempty" yaml:"onNewInput,omitempty"`

	// OnMissingToolResult is what happens to an input without results for calls of the client's tools: abandon (the default), reject or queue.
	OnMissingToolResult string `json:"onMissingToolResult,omitempty" yaml:"onMissingToolResult,omitempty"`

	// LegacyInterrupts also sends interrupts as the custom event on_interrupt, for clients from before interrupts, and accepts their answers.
	LegacyInterrupts bool `json:"legacyInterrupts,omitempty" yaml:"legacyInterrupts,omitempty"`
}

// Limits bounds a run. In Go, a zero field has its default. In a file, a limit of zero is an error, because its author probably means something else.
type Limits struct {
	// Turns is how often the model may be called. Default 30.
	Turns int `json:"turns,omitempty" yaml:"turns,omitempty"`

	// Tokens is how many tokens all calls of the model may use together, input and output. Default 400,000.
	Tokens int64 `json:"tokens,omitempty" yaml:"tokens,omitempty"`

	// Duration is how long the run may take; as text it is a Go duration such
	// as 90s or 2h. Default 2h.
	Duration time.Duration `json:"duration,omitempty" yaml:"duration,omitempty"`

	// ParallelTools is how many tools the model may call in one turn, 1 to 512. Up to eight of them run concurrently. Default 8.
	ParallelTools int `json:"parallelTools,omitempty" yaml:"parallelTools,omitempty"`

	// Cost is what all calls of the model may cost together, in the currency of the worker's prices. Models without a price are not called then. 0 =
	// unlimited.
	Cost Money `json:"cost,omitempty" yaml:"cost,omitempty"`

	// Soft are limits at which people are asked whether the run may continue; nil = none. Inline agents of steps have none.
	Soft *SoftLimits `json:"soft,omitempty" yaml:"soft,omitempty"`
}

// DefaultLimits returns the limits of an agent without limits.
func DefaultLimits() Limits {
	return Limits{Turns: 30, Tokens: 400_000, Duration: 2 * time.Hour, ParallelTools: 8}
}

// orDefault replaces limits that are not set by the defaults.
func (l Limits) orDefault() Limits { return l.or(DefaultLimits()) }

// or replaces limits that are not set by others.
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
