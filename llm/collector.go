package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Collector puts the chunks of one completion together. The zero value is
// ready. It is not safe for concurrent use.
//
// What it holds is usable at any time: after a cancel or a cut connection it
// is the part that was received, the last tool call possibly half.
type Collector struct {
	text      strings.Builder
	reasoning []Reasoning
	thought   strings.Builder
	calls     map[int]*collectedCall
	finish    *Finish
}

// collectedCall is a tool call whose arguments are being received.
type collectedCall struct {
	id, name  string
	arguments strings.Builder
}

// Add takes the next chunk.
func (c *Collector) Add(chunk Chunk) {
	switch chunk := chunk.(type) {
	case TextDelta:
		c.text.WriteString(chunk.Text)
	case ReasoningDelta:
		c.thought.WriteString(chunk.Text)
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

// Message returns the assistant message received so far.
func (c *Collector) Message() Message {
	message := Message{Role: RoleAssistant, Reasoning: slices.Clone(c.reasoning)}
	if c.thought.Len() > 0 {
		message.Reasoning = append(message.Reasoning, Reasoning{Text: c.thought.String()})
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

// Finish returns the last chunk, or nil while the completion is not over.
func (c *Collector) Finish() *Finish { return c.finish }

func (c *Collector) endReasoning(provider string, data json.RawMessage) {
	c.reasoning = append(c.reasoning, Reasoning{Text: c.thought.String(), Provider: provider, Data: data})
	c.thought.Reset()
}

func (c *Collector) call(index int) *collectedCall {
	if c.calls == nil {
		c.calls = make(map[int]*collectedCall)
	}
	if c.calls[index] == nil {
		c.calls[index] = &collectedCall{}
	}
	return c.calls[index]
}

func (c *Collector) indices() []int {
	indices := make([]int, 0, len(c.calls))
	for index := range c.calls {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	return indices
}
