package agui

// Rule is a rule for the order of events, or for a producer's events.
type Rule string

// The rules for the order of events, which a Verifier checks.
const (
	// RuleFirstEvent: a stream begins with RUN_STARTED or RUN_ERROR.
	RuleFirstEvent Rule = "first_event"
	// RuleAfterTerminal: only RUN_STARTED and one late RUN_ERROR follow RUN_FINISHED; only
	// RUN_STARTED follows RUN_ERROR.
	RuleAfterTerminal Rule = "after_terminal"
	// RuleRunOpen: no RUN_STARTED while a run is open.
	RuleRunOpen Rule = "run_open"
	// RuleAlreadyOpen: an open item is not opened again.
	RuleAlreadyOpen Rule = "already_open"
	// RuleNotOpen: only an open item is continued or closed.
	RuleNotOpen Rule = "not_open"
	// RuleOpenAtFinish: all items are closed before RUN_FINISHED.
	RuleOpenAtFinish Rule = "open_at_finish"
	// RuleOwner: an event that continues or reopens an item has the item's owner, or no
	// attribution.
	RuleOwner Rule = "owner"
	// RuleSubagentReused: a subagentRunId is announced once in a run.
	RuleSubagentReused Rule = "subagent_reused"
	// RuleUnknownParent: a subagent's parent was announced in this run.
	RuleUnknownParent Rule = "unknown_parent"
	// RuleFirstChunk: the first chunk of an item has its ID, and that of a tool call also its name.
	RuleFirstChunk Rule = "first_chunk"
	// RuleChunkConflict: a later chunk does not change the members of the first.
	RuleChunkConflict Rule = "chunk_conflict"
	// RuleChunkAmbiguous: a chunk identifies which of several open items it continues.
	RuleChunkAmbiguous Rule = "chunk_ambiguous"
)

// The rules for producers, which a Guard checks in addition.
const (
	// RuleUndefined: an event contains only what the protocol defines.
	RuleUndefined Rule = "undescribed"
	// RuleVersion: the declared version is one that this package supports.
	RuleVersion Rule = "version"
	// RuleRunIDs: a run ends with the IDs with which it began.
	RuleRunIDs Rule = "run_ids"
	// RuleInterruptIDs: the IDs of a run's interrupts are unique.
	RuleInterruptIDs Rule = "interrupt_ids"
	// RulePendingToolCalls: pendingToolCallIds, if present, contains exactly the calls that the run
	// started and did not answer, in order.
	RulePendingToolCalls Rule = "pending_tool_calls"
	// RuleTruncated: a stream ends after RUN_FINISHED or RUN_ERROR.
	RuleTruncated Rule = "truncated"
)

// OrderError is the error of an event that violates a rule for streams.
type OrderError struct {
	Rule Rule
	// Type is the type of the rejected event.
	Type EventType
	// ID identifies the item: the ID of a message, tool call or subagent, or the name of a step; ""
	// = none.
	ID string
	// Detail is a description for people.
	Detail string
}

// Error implements error.
func (e *OrderError) Error() string {
	if e.ID == "" {
		return "agui: " + string(e.Type) + ": " + e.Detail
	}
	return "agui: " + string(e.Type) + " " + e.ID + ": " + e.Detail
}

// ownerName describes the owner of an item in error messages.
func ownerName(subagentRunID string) string {
	if subagentRunID == "" {
		return "the parent agent"
	}
	return "subagent " + subagentRunID
}
