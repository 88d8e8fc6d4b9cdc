package agui

// Rule names an ordering rule of the protocol.
type Rule string

// The ordering rules.
const (
	// RuleFirstEvent: a stream begins with RUN_STARTED or RUN_ERROR.
	RuleFirstEvent Rule = "first_event"
	// RuleAfterTerminal: after RUN_FINISHED come only RUN_STARTED and one late
	// RUN_ERROR, after RUN_ERROR only RUN_STARTED.
	RuleAfterTerminal Rule = "after_terminal"
	// RuleRunOpen: no RUN_STARTED while a run is open.
	RuleRunOpen Rule = "run_open"
	// RuleAlreadyOpen: nothing is opened that is open.
	RuleAlreadyOpen Rule = "already_open"
	// RuleNotOpen: nothing is continued or closed that is not open.
	RuleNotOpen Rule = "not_open"
	// RuleOpenAtFinish: everything is closed before RUN_FINISHED.
	RuleOpenAtFinish Rule = "open_at_finish"
	// RuleOwner: what continues or reopens an item has the item's owner, or
	// no attribution.
	RuleOwner Rule = "owner"
	// RuleSubagentReused: a subagentRunId is announced once in a run.
	RuleSubagentReused Rule = "subagent_reused"
	// RuleUnknownParent: a subagent's parent was announced in this run.
	RuleUnknownParent Rule = "unknown_parent"
	// RuleFirstChunk: the first chunk of an item has its id, and a tool
	// call's also its name.
	RuleFirstChunk Rule = "first_chunk"
	// RuleChunkConflict: a later chunk repeats opener members unchanged.
	RuleChunkConflict Rule = "chunk_conflict"
	// RuleChunkAmbiguous: a chunk says which of several open items it continues.
	RuleChunkAmbiguous Rule = "chunk_ambiguous"
)

// The rules for producers only, which a Guard checks.
const (
	// RuleUndescribed: an event has only what the protocol describes.
	RuleUndescribed Rule = "undescribed"
	// RuleVersion: the declared version is one that this package speaks.
	RuleVersion Rule = "version"
	// RuleRunIDs: a run ends under the ids that it began with.
	RuleRunIDs Rule = "run_ids"
	// RuleInterruptIDs: the ids of a run's interrupts are unique.
	RuleInterruptIDs Rule = "interrupt_ids"
	// RulePendingToolCalls: pendingToolCallIds, where it is sent, names exactly the calls that the
	// run started and did not answer, in order.
	RulePendingToolCalls Rule = "pending_tool_calls"
	// RuleTruncated: a stream ends behind RUN_FINISHED or RUN_ERROR.
	RuleTruncated Rule = "truncated"
)

// OrderError says which event breaks which rule of a stream.
type OrderError struct {
	Rule Rule
	// Type is the type of the refused event.
	Type EventType
	// ID is the item concerned (message, tool call, step name, subagent), or "".
	ID string
	// Detail is a sentence for people.
	Detail string
}

func (e *OrderError) Error() string {
	if e.ID == "" {
		return "agui: " + string(e.Type) + ": " + e.Detail
	}
	return "agui: " + string(e.Type) + " " + e.ID + ": " + e.Detail
}

// ownerName returns a subagentRunId for people.
func ownerName(subagentRunID string) string {
	if subagentRunID == "" {
		return "the parent agent"
	}
	return "subagent " + subagentRunID
}
