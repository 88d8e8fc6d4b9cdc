package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Collector builds the assistant message and the Finish of one completion from its chunks. The zero
// value is ready to use. It is not safe for concurrent use.
//
// [Collector.Message] is usable at any time. After a cancel or a broken connection it returns the
// part that was received, and the arguments of its tool calls can be incomplete.
type Collector struct {
	text          strings.Builder        // text of the answer so far
	reasoning     []Reasoning            // ended blocks
	openReasoning strings.Builder        // visible text of the block that has not ended
	calls         map[int]*collectedCall // by index
	finish        *Finish                // nil until the completion has ended
}

// collectedCall is a tool call whose arguments are still arriving.
type collectedCall struct {
	id, name  string
	arguments strings.Builder
}

// Add adds the next chunk. It ignores activities and usage reports, which are not part of the
// message.
func (c *Collector) Add(chunk Chunk) {
	switch chunk := chunk.(type) {
	case TextDelta:
		c.text.WriteString(chunk.Text)
	case ReasoningDelta:
		c.openReasoning.WriteString(chunk.Text)
	case ReasoningEnd:
		c.endReasoning(chunk.Provider, chunk.Data)
	case ToolCallStart:
		call := c.call(chunk.Index)
		call.id, call.name = chunk.ID, chunk.Name
	case ToolCallDelta:
		c.call(chunk.Index).arguments.WriteString(chunk.Arguments)
	case Finish:
		c.finish = &chunk
	}
}

// Message returns the assistant message received so far. A reasoning block without a ReasoningEnd
// becomes a block without Provider and Data, so no provider sends it back. The result shares no
// memory with later Adds, except for [Reasoning.Data].
func (c *Collector) Message() Message {
	message := Message{Role: RoleAssistant, Reasoning: slices.Clone(c.reasoning)}
	if c.openReasoning.Len() > 0 {
		message.Reasoning = append(message.Reasoning, Reasoning{Text: c.openReasoning.String()})
	}
	if c.text.Len() > 0 {
		message.Parts = []Part{Text{Text: c.text.String()}}
	}
	for _, index := range c.indices() {
		call := c.calls[index]
		message.ToolCalls = append(message.ToolCalls, ToolCall{ID: call.id, Name: call.name, Arguments: call.arguments.String()})
	}
	return message
}

// Finish returns the last chunk, or nil if the completion has not ended.
func (c *Collector) Finish() *Finish { return c.finish }

// endReasoning stores the current reasoning block, which can be empty, and begins the next.
func (c *Collector) endReasoning(provider string, data json.RawMessage) {
	c.reasoning = append(c.reasoning, Reasoning{Text: c.openReasoning.String(), Provider: provider, Data: data})
	c.openReasoning.Reset()
}

// call returns the call with that index and creates it if necessary.
func (c *Collector) call(index int) *collectedCall {
	if c.calls == nil {
		c.calls = make(map[int]*collectedCall)
	}
	if c.calls[index] == nil {
		c.calls[index] = &collectedCall{}
	}
	return c.calls[index]
}

// indices returns the indices of the calls in ascending order.
func (c *Collector) indices() []int {
	indices := make([]int, 0, len(c.calls))
	for index := range c.calls {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	return indices
}
