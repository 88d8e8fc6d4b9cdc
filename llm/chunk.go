package llm

import "encoding/json"

// Chunk is one piece of a streamed completion: [TextDelta], [ReasoningDelta], [ReasoningEnd],
// [ToolCallStart], [ToolCallDelta], [Activity], [ActivityPatch], [UsageReport] or [Finish].
//
// No chunk ends a tool call, because the arguments of parallel calls may interleave up to the end.
// All calls are complete when [Finish] arrives with [FinishToolCalls].
type Chunk interface{ chunk() }

// TextDelta appends to the text of the answer. Text is never empty.
type TextDelta struct{ Text string }

// ReasoningDelta appends to the visible reasoning. Text is never empty.
type ReasoningDelta struct{ Text string }

// ReasoningEnd ends the block of the reasoning deltas since the last ReasoningEnd. Provider and
// Data are those of [Reasoning]; a nil Data need not be sent back. A block can have no deltas at
// all, for instance if the provider encrypts it. A stream can also end without a ReasoningEnd.
type ReasoningEnd struct {
	Provider string
	Data     json.RawMessage
}

// ToolCallStart begins a tool call. It precedes the deltas with the same index.
type ToolCallStart struct {
	// Index identifies the call within the completion, from 0. It also orders the calls. Indices
	// can have gaps if the API's own numbering has.
	Index int

	// ID and Name are never empty, and IDs are unique within a completion. A provider generates an
	// ID if the API omits or repeats one.
	ID, Name string
}

// ToolCallDelta appends to the arguments of the call with that index. Arguments is never empty.
type ToolCallDelta struct {
	Index     int
	Arguments string
}

// Activity shows what the provider does on its own side during a completion, such as a web search.
// Clients display it; it is not part of the answer, and later requests do not contain it.
type Activity struct {
	// Name identifies the activity within the completion. A second Activity with the same name
	// replaces the first.
	Name string

	// Kind is the type by which clients choose a view.
	Kind string

	// Content is a JSON object.
	Content json.RawMessage
}

// ActivityPatch changes the content of an [Activity] of the same completion.
type ActivityPatch struct {
	// Name is the name of the activity.
	Name string

	// Patch is a JSON Patch (RFC 6902). It must apply to the activity's current content.
	Patch json.RawMessage
}

// UsageReport is the token usage reported so far in an unfinished completion. Each report replaces
// the previous one, and [Finish] replaces all. Only APIs that report usage during the stream cause
// it. It lets the caller account for a completion that fails or is cancelled.
type UsageReport struct {
	// Usage is the total so far, not a difference.
	Usage Usage

	// Model and Provider are those of [Finish].
	Model, Provider string
}

// Finish is the last chunk of a successful completion.
type Finish struct {
	// Reason is why the completion ended.
	Reason FinishReason
	// Usage is the final token usage.
	Usage Usage

	// Model is the name of the model that answered, as the API reports it. It is often more
	// specific than [Request.Model]: a dated snapshot instead of an alias.
	Model string

	// Provider is the short name of the provider, such as "openai".
	Provider string
}

func (TextDelta) chunk()      {}
func (ReasoningDelta) chunk() {}
func (ReasoningEnd) chunk()   {}
func (ToolCallStart) chunk()  {}
func (ToolCallDelta) chunk()  {}
func (Activity) chunk()       {}
func (ActivityPatch) chunk()  {}
func (UsageReport) chunk()    {}
func (Finish) chunk()         {}

// FinishReason is why a completion ended, in terms common to all providers.
type FinishReason string

// The reasons why a completion ends.
const (
	// FinishStop: a complete answer without tool calls.
	FinishStop FinishReason = "stop"

	// FinishToolCalls: the model requests tool calls and waits for their results. All calls are
	// complete.
	FinishToolCalls FinishReason = "tool_calls"

	// FinishLength: a token limit cut the completion. The last tool call can be incomplete.
	FinishLength FinishReason = "length"

	// FinishContentFilter: the provider withheld the rest of the answer, or the model refused to answer. A
	// refusal may have text for the user.
	FinishContentFilter FinishReason = "content_filter"

	// FinishOther: a reason that this package has no constant for.
	FinishOther FinishReason = "other"
)

// Usage counts tokens. A nil count means that the provider did not report it, which is different
// from 0.
type Usage struct {
	// Input and Output are all tokens read and written, including the subsets below. Total is their
	// sum as the provider reports it.
	Input, Output, Total *int64

	// Reasoning is the subset of Output that the model spent on reasoning.
	Reasoning *int64

	// CachedInput and CacheWrite are the subsets of Input read from and written to the provider's
	// prompt cache.
	CachedInput, CacheWrite *int64
}
