package wire

import (
	"encoding/json"

	"github.com/perdure/perdure/llm"
)

// Completion collects the chunks of one completion while a provider's events are read. One
// goroutine uses it.
type Completion struct {
	// Calls are the tool calls of the completion.
	Calls *Calls
	// Finish is the last chunk, as far as it is known.
	Finish llm.Finish

	chunks []llm.Chunk // not yet taken
	bytes  int         // received content
	limit  int
}

// NewCompletion begins a completion of req by the provider of that name.
func NewCompletion(req *llm.Request, provider string, limits Limits) Completion {
	return Completion{
		Calls: NewCalls(req, limits.ToolCalls), Finish: llm.Finish{Model: req.Model, Provider: provider}, limit: limits.ContentBytes,
	}
}

// Emit adds a chunk.
func (c *Completion) Emit(chunk llm.Chunk) { c.chunks = append(c.chunks, chunk) }

// Take returns the chunks since the last Take. They are valid until the next Emit.
func (c *Completion) Take() []llm.Chunk {
	chunks := c.chunks
	c.chunks = c.chunks[:0]
	return chunks
}

// Received counts received content, in bytes.
func (c *Completion) Received(bytes int) { c.bytes += bytes }

// CheckSize returns an error if the completion has more content than the limit.
func (c *Completion) CheckSize() error {
	if c.bytes > c.limit {
		return TooLarge("the completion has more than %d bytes", c.limit)
	}
	return nil
}

// Unquote returns the string in a JSON literal, and counts it as received. Half a character at its
// end stays, as [Unquote] says.
func (c *Completion) Unquote(literal json.RawMessage) string {
	s, _ := Unquote(string(literal))
	c.Received(len(s))
	return s
}

// AddCall adds a piece of a tool call, as [Calls.Add] does.
func (c *Completion) AddCall(slot int64, id, name, arguments string) error {
	var err error
	c.chunks, err = c.Calls.Add(c.chunks, slot, id, name, arguments)
	return err
}

// SetModel sets the model that answers, if the literal names one.
func (c *Completion) SetModel(literal json.RawMessage) {
	if model, ok := Unquote(string(literal)); ok && model != "" {
		var m Mender
		c.Finish.Model = m.Mend(model) + m.Flush()
	}
}

// ReportUsage emits the usage so far.
func (c *Completion) ReportUsage(usage llm.Usage) {
	c.Emit(llm.UsageReport{Usage: usage, Model: c.Finish.Model, Provider: c.Finish.Provider})
}

// Close ends the completion after its last text: it completes the calls and emits Finish. A
// completion that stopped with calls has the reason FinishToolCalls.
func (c *Completion) Close() error {
	if c.Finish.Reason == llm.FinishStop && c.Calls.Len() > 0 {
		c.Finish.Reason = llm.FinishToolCalls
	}
	whole := c.Finish.Reason == llm.FinishToolCalls || c.Finish.Reason == llm.FinishStop
	var err error
	if c.chunks, err = c.Calls.Finish(c.chunks, whole); err != nil {
		return err
	}
	c.Emit(c.Finish)
	return nil
}

// Malformed returns the error of a response that breaks the provider's protocol.
func Malformed(message string) *llm.Error {
	return &llm.Error{Code: llm.CodeMalformedResponse, Message: message}
}

// IsPresent reports whether a member has a value that is not null.
func IsPresent(data json.RawMessage) bool { return len(data) > 0 && string(data) != "null" }
