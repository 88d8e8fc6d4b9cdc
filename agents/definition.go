package agents

import (
	"strings"
)

// Definition is the definition of an agent. It is plain data: to change it, change a copy, whose
// [Definition.Revision] then differs. A definition of Parse or Decode is valid and has its
// defaults; one that was made in Go is checked by Validate.
type Definition struct {
	// Name is the agent's name in URLs and other definitions: [a-z0-9][a-z0-9_-]{0,63}.
	Name string `json:"name" yaml:"name"`

	// Description is for users, and for models that may call the agent as a subagent. Optional, at
	// most 4 KiB.
	Description string `json:"description,omitempty" yaml:"description,omitempty"`

	// Model is provider/model, such as openai/gpt-5-mini. In an agent with Steps it is the default
	// of its inline agents. In files, model may also be a list of models: see Fallback.
	Model string `json:"model,omitempty" yaml:"model,omitempty"`

	// Fallback has the models that follow if a call of Model fails.
	Fallback Fallback `json:"fallback,omitzero" yaml:"fallback,omitempty"`

	// Reasoning is how much the model reasons.
	Reasoning Reasoning `json:"reasoning,omitzero" yaml:"reasoning,omitempty"`

	// Instructions are the system prompt. Optional, at most 256 KiB.
	Instructions string `json:"instructions,omitempty" yaml:"instructions,omitempty"`

	// Tools are names of tools, or patterns with * as a wildcard, in the order in which the model
	// gets them. agent:name is a subagent, handoff:name an agent to which the thread may be handed
	// over, client:name a tool of the client, and mcp:server/tool one of an MCP server. At most
	// 256, each once.
	Tools []string `json:"tools,omitempty" yaml:"tools,omitempty"`

	// Steps are the steps of a pipeline, instead of a model: at most 500, 12 deep.
	Steps []Step `json:"steps,omitempty" yaml:"steps,omitempty"`

	// Workflow is the registered name of the agent's program, a Go workflow function. Such an agent
	// has no steps. Its model is the default of the agents in the program's steps.
	Workflow string `json:"workflow,omitempty" yaml:"workflow,omitempty"`

	// Remote is the AG-UI endpoint of an agent on another server, instead of a model; nil = there is
	// none.
	Remote *Remote `json:"remote,omitempty" yaml:"remote,omitempty"`

	// Triggers start runs for events. At most 16.
	Triggers []Trigger `json:"triggers,omitempty" yaml:"triggers,omitempty"`

	// Approvals are the rules about calls that approvers approve. At most 32.
	Approvals []Approval `json:"approvals,omitempty" yaml:"approvals,omitempty"`

	// Output is the form of the agent's final answer, which is the result of its runs; nil = any text,
	// and the runs have no result.
	Output *Output `json:"output,omitempty" yaml:"output,omitempty"`

	// State is how the agent uses the state that it shares with its clients.
	State State `json:"state,omitzero" yaml:"state,omitempty"`

	// Context bounds the part of the conversation that the model gets.
	Context Context `json:"context,omitzero" yaml:"context,omitempty"`

	// TitleModel writes the title of a thread that begins with the agent, as provider/model; empty =
	// the title is the beginning of the first message.
	TitleModel string `json:"titleModel,omitempty" yaml:"titleModel,omitempty"`

	// Limits bounds each run.
	Limits Limits `json:"limits,omitzero" yaml:"limits,omitempty"`

	// Input is what clients may write.
	Input InputPolicy `json:"input,omitzero" yaml:"input,omitempty"`

	// History is how the messages of a run's input relate to the thread's: auto (the default),
	// append or replace. An input may override it in forwardedProps.perdure.history.
	History string `json:"history,omitempty" yaml:"history,omitempty"`

	// OnNewInput is what happens to an input that leaves interrupts open: reject (the default) or
	// queue.
	OnNewInput string `json:"onNewInput,omitempty" yaml:"onNewInput,omitempty"`

	// OnMissingToolResult is what happens to an input without results for calls of the client's
	// tools: abandon (the default), reject or queue.
	OnMissingToolResult string `json:"onMissingToolResult,omitempty" yaml:"onMissingToolResult,omitempty"`

	// LegacyInterrupts also sends interrupts as the custom event on_interrupt and accepts its
	// answers, for clients that do not support AG-UI interrupts.
	LegacyInterrupts bool `json:"legacyInterrupts,omitempty" yaml:"legacyInterrupts,omitempty"`
}

// ModelProvider returns the parts of Model before and after its first slash. The model's own name
// may have further slashes.
func (d *Definition) ModelProvider() (provider, model string) {
	provider, model, _ = strings.Cut(d.Model, "/")
	return provider, model
}

// Models returns all models of the agent, in the order in which a call attempts them; nil = it has
// none.
func (d *Definition) Models() []string {
	if d.Model == "" {
		return nil
	}
	return append([]string{d.Model}, d.Fallback.Models...)
}

// WithModel returns the definition with another model in place of Model. It is a shallow copy, or d itself if
// Model is the same. Fallback is unchanged, so Models of the copy may have the model twice.
func (d *Definition) WithModel(model string) *Definition {
	if model == d.Model {
		return d
	}
	copied := *d
	copied.Model = model
	return &copied
}
