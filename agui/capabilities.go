package agui

import "encoding/json"

// AgentCapabilities describes what an agent supports. Every group and member is optional: nil means
// undeclared, which is different from false. An agent should declare only what it supports.
type AgentCapabilities struct {
	Identity       *IdentityCapabilities       `json:"identity,omitempty"`
	Transport      *TransportCapabilities      `json:"transport,omitempty"`
	Tools          *ToolsCapabilities          `json:"tools,omitempty"`
	Output         *OutputCapabilities         `json:"output,omitempty"`
	State          *StateCapabilities          `json:"state,omitempty"`
	MultiAgent     *MultiAgentCapabilities     `json:"multiAgent,omitempty"`
	Reasoning      *ReasoningCapabilities      `json:"reasoning,omitempty"`
	Multimodal     *MultimodalCapabilities     `json:"multimodal,omitempty"`
	Execution      *ExecutionCapabilities      `json:"execution,omitempty"`
	HumanInTheLoop *HumanInTheLoopCapabilities `json:"humanInTheLoop,omitempty"`
	// Custom is an open object.
	Custom map[string]json.RawMessage `json:"custom,omitempty"`
}

// IdentityCapabilities describes the agent itself.
type IdentityCapabilities struct {
	Name             string   `json:"name,omitempty"`
	Type             string   `json:"type,omitempty"`
	Description      string   `json:"description,omitempty"`
	Version          string   `json:"version,omitempty"`
	Provider         string   `json:"provider,omitempty"`
	DocumentationURL string   `json:"documentationUrl,omitempty"`
	Metadata         Metadata `json:"metadata,omitempty"`
}

// TransportCapabilities describes how clients reach the agent. The protocol does not define the
// mechanisms behind Resumable and PushNotifications.
type TransportCapabilities struct {
	Streaming         *bool `json:"streaming,omitempty"`
	WebSocket         *bool `json:"websocket,omitempty"`
	HTTPBinary        *bool `json:"httpBinary,omitempty"`
	PushNotifications *bool `json:"pushNotifications,omitempty"`
	Resumable         *bool `json:"resumable,omitempty"`
}

// ToolsCapabilities describes tool calling; Items are the agent's own tools.
type ToolsCapabilities struct {
	Supported      *bool  `json:"supported,omitempty"`
	Items          []Tool `json:"items,omitempty"`
	ParallelCalls  *bool  `json:"parallelCalls,omitempty"`
	ClientProvided *bool  `json:"clientProvided,omitempty"`
}

// OutputCapabilities describes what the agent can produce.
type OutputCapabilities struct {
	StructuredOutput   *bool    `json:"structuredOutput,omitempty"`
	SupportedMimeTypes []string `json:"supportedMimeTypes,omitempty"`
}

// StateCapabilities describes shared state and memory.
type StateCapabilities struct {
	Snapshots       *bool `json:"snapshots,omitempty"`
	Deltas          *bool `json:"deltas,omitempty"`
	Memory          *bool `json:"memory,omitempty"`
	PersistentState *bool `json:"persistentState,omitempty"`
}

// MultiAgentCapabilities describes cooperation with other agents.
type MultiAgentCapabilities struct {
	Supported  *bool          `json:"supported,omitempty"`
	Delegation *bool          `json:"delegation,omitempty"`
	Handoffs   *bool          `json:"handoffs,omitempty"`
	Subagents  []SubagentInfo `json:"subagents,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. It also accepts the member "subAgents" of peers from
// before 1.0, unless "subagents" exists.
func (m *MultiAgentCapabilities) UnmarshalJSON(raw []byte) error {
	type plain MultiAgentCapabilities
	var exact map[string]json.RawMessage // a struct would match member names in any case
	if err := json.Unmarshal(raw, &exact); err != nil {
		return err
	}
	if old, ok := exact["subAgents"]; ok {
		if exact["subagents"] == nil {
			exact["subagents"] = old
		}
		delete(exact, "subAgents")
	}
	modern, err := json.Marshal(exact)
	if err != nil {
		return err
	}
	return json.Unmarshal(modern, (*plain)(m))
}

// SubagentInfo describes a subagent.
type SubagentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// ReasoningCapabilities describes visible reasoning.
type ReasoningCapabilities struct {
	Supported *bool `json:"supported,omitempty"`
	Streaming *bool `json:"streaming,omitempty"`
	Encrypted *bool `json:"encrypted,omitempty"`
}

// MultimodalCapabilities describes media as input and output.
type MultimodalCapabilities struct {
	Input  *MultimodalInput  `json:"input,omitempty"`
	Output *MultimodalOutput `json:"output,omitempty"`
}

// MultimodalInput describes the media that the agent accepts.
type MultimodalInput struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
	Video *bool `json:"video,omitempty"`
	PDF   *bool `json:"pdf,omitempty"`
	File  *bool `json:"file,omitempty"`
}

// MultimodalOutput describes the media that the agent produces.
type MultimodalOutput struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
}

// ExecutionCapabilities describes code execution and the limits of a run.
type ExecutionCapabilities struct {
	CodeExecution *bool  `json:"codeExecution,omitempty"`
	Sandboxed     *bool  `json:"sandboxed,omitempty"`
	MaxIterations *int64 `json:"maxIterations,omitempty"`
	// MaxExecutionTime is in milliseconds.
	MaxExecutionTime *int64 `json:"maxExecutionTime,omitempty"`
}

// HumanInTheLoopCapabilities describes how people take part in a run.
type HumanInTheLoopCapabilities struct {
	Supported        *bool `json:"supported,omitempty"`
	Approvals        *bool `json:"approvals,omitempty"`
	Interventions    *bool `json:"interventions,omitempty"`
	Feedback         *bool `json:"feedback,omitempty"`
	Interrupts       *bool `json:"interrupts,omitempty"`
	ApproveWithEdits *bool `json:"approveWithEdits,omitempty"`
}
