package runs

import "github.com/perdure/perdure/agents/pipeline"

// ToolAnswer is the output of ActivityCallTool, of ActivityAnswerSubagent and of a child workflow:
// how a call or branch ended. The result is in the log.
type ToolAnswer struct {
	LocalAnswer
	Outcome Outcome `json:"outcome"`
	// Seq is the last record of the call's lane, Opened that of the agent's lane.
	Seq    uint64 `json:"seq"`
	Opened uint64 `json:"opened"`
	// HandedOver tells that the thread belongs to the other agent now.
	HandedOver bool `json:"handedOver,omitempty"`
	// Usage is what a subagent or branch used with all below it, Subagents how many subagents these
	// were.
	Usage     []Usage `json:"usage,omitempty"`
	Subagents int     `json:"subagents,omitempty"`
	// Question is set if the tool asks people: the call is an interrupt.
	Question *AskedQuestion `json:"question,omitempty"`
	// ForClient tells that the call is approved and waits for the client's result.
	ForClient bool `json:"forClient,omitempty"`
	// Suspended is the state of a child that ended with Interrupts, so that the run can end with
	// them; nil = it has come to its end.
	Suspended  *SuspendedChild `json:"suspended,omitempty"`
	Interrupts *Interrupts     `json:"interrupts,omitempty"`
	// Failed is why a branch failed. MayNeedCompensation tells that a branch that succeeded has
	// done something for which there is a compensation.
	Failed              *pipeline.Failure `json:"failed,omitempty"`
	MayNeedCompensation bool              `json:"mayNeedCompensation,omitempty"`
}
