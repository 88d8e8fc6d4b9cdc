package llm

import "encoding/json"

// Chunk is one piece of a streamed completion: [TextDelta], [ReasoningDelta],
// [ReasoningEnd], [ToolCallStart], [ToolCallDelta], [Activity], [ActivityPatch],
// [UsageReport] or [Finish].
//
// There is no end of a tool call, because arguments of parallel calls may
// interleave to the last: calls are complete when Finish has come.
type Chunk interface{ chunk() }

// TextDelta continues the answer. Text is never empty.
type TextDelta struct{ Text string }

// ReasoningDelta continues the visible thinking. Text is never empty.
type ReasoningDelta struct{ Text string }

// ReasoningEnd closes the block that the reasoning deltas since the last
// ReasoningEnd belong to. Only providers that want something back send it; a
// block may consist of nothing else. See [Reasoning].
type ReasoningEnd struct {
	Provider string
	Data     json.RawMessage
}

// ToolCallStart opens a tool call. It precedes the deltas of its index.
type ToolCallStart struct {
	// Index is the call's place among the calls of this completion, from 0.
	Index int

	// ID and Name are never empty, and no ID comes twice: a provider fills in
	// what its server left out.
	ID, Name string
}

// ToolCallDelta continues the arguments of a call. Arguments is never empty.
type ToolCallDelta struct {
	Index     int
	Arguments string
}

// Activity shows people what the provider does by itself while it answers, such
// as a search that it runs on its own side. It is no part of the answer, and no
// model hears of it again.
type Activity struct {
	// Name tells the activities of this completion apart. One that is there
	// already is replaced.
	Name string

	// Kind is what clients choose their view by.
	Kind string

	// Content is a JSON object.
	Content json.RawMessage
}

// ActivityPatch changes the content of an activity of this completion.
type ActivityPatch struct {
	Name string

	// Patch is a JSON Patch (RFC 6902) that applies.
	Patch json.RawMessage
}

// UsageReport is the usage of a completion that is not over, as far as the
// provider has reported it. The newest report replaces the ones before it, and
// Finish replaces all. Only providers that count before the end send it.
type UsageReport struct {
	Usage Usage

	// Model and Provider are those of [Finish].
	Model, Provider string
}

// Finish is the last chunk of a completion.
type Finish struct {
	Reason FinishReason
	Usage  Usage

	// Model is the model that answered, by the provider's account: often more
	// exact than the one asked for.
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

// FinishReason says why a completion ended.
type FinishReason string

// The reasons for which a completion ends.
const (
	// FinishStop is a complete answer without tool calls.
	FinishStop FinishReason = "stop"

	// FinishToolCalls asks for the results of the calls. All calls are complete.
	FinishToolCalls FinishReason = "tool_calls"

	// FinishLength says that a token limit cut the completion; the last tool
	// call, if there is any, may be half a call.
	FinishLength FinishReason = "length"

	// FinishContentFilter says that the provider withheld the rest.
	FinishContentFilter FinishReason = "content_filter"

	// FinishOther is any reason that we do not know.
	FinishOther FinishReason = "other"
)

// Usage counts tokens. A nil count was not reported, which is not 0.
type Usage struct {
	// Input and Output are all tokens read and written, including the parts
	// below; Total is their sum by the provider's account.
	Input, Output, Total *int64

	// Reasoning is the part of Output that was thinking.
	Reasoning *int64

	// CachedInput and CacheWrite are the parts of Input that were read from
	// and written to the provider's prompt cache.
	CachedInput, CacheWrite *int64
}
