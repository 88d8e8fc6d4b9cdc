package wire

import (
	"encoding/json"

	"github.com/perdure/perdure/llm"
)

// Completion accumulates the chunks of one completion while a provider's [Reply] reads events.
// Providers embed it. One goroutine uses it.
type Completion struct {
	// Calls are the tool calls of the completion.
	Calls *Calls
	// Finish is the last chunk. The provider fills it in as the information arrives; Close emits
	// it.
	Finish llm.Finish

	chunks []llm.Chunk // emitted, not yet taken
	bytes  int         // content received so far
	limit  int         // maximum of bytes
}

// NewCompletion returns an empty completion of req by the named provider. Until the API reports the
// model, Finish carries the requested one.
func NewCompletion(req *llm.Request, provider string, limits Limits) Completion {
	return Completion{
		Calls: NewCalls(req, limits.ToolCalls), Finish: llm.Finish{Model: req.Model, Provider: provider}, limit: limits.ContentBytes,
	}
}

// Emit adds a chunk to the next Take.
func (c *Completion) Emit(chunk llm.Chunk) { c.chunks = append(c.chunks, chunk) }

// Take returns the chunks since the last Take. The slice is reused: it is valid until the next
// Emit.
func (c *Completion) Take() []llm.Chunk {
	chunks := c.chunks
	c.chunks = c.chunks[:0]
	return chunks
}

// Received adds to the number of content bytes received. Text, reasoning and arguments count,
// because callers keep them in memory.
func (c *Completion) Received(bytes int) { c.bytes += bytes }

// CheckSize returns a [TooLarge] error if the content exceeds the limit.
func (c *Completion) CheckSize() error {
	if c.bytes > c.limit {
		return TooLarge("the completion has more than %d bytes", c.limit)
	}
	return nil
}

// Unquote decodes a JSON string literal and counts it as received. It returns "" for anything else,
// such as null. An incomplete character at the end is preserved, as in the function [Unquote].
func (c *Completion) Unquote(literal json.RawMessage) string {
	s, _ := Unquote(string(literal))
	c.Received(len(s))
	return s
}

// AddCall adds a fragment of a tool call and emits its chunks, see [Calls.Add].
func (c *Completion) AddCall(slot int64, id, name, arguments string) error {
	var err error
	c.chunks, err = c.Calls.Add(c.chunks, slot, id, name, arguments)
	return err
}

// SetModel sets the model of Finish if the JSON literal is a non-empty string.
func (c *Completion) SetModel(literal json.RawMessage) {
	if model, ok := Unquote(string(literal)); ok && model != "" {
		var m Mender
		c.Finish.Model = m.Mend(model) + m.Flush()
	}
}

// ReportUsage emits the usage so far as an [llm.UsageReport].
func (c *Completion) ReportUsage(usage llm.Usage) {
	c.Emit(llm.UsageReport{Usage: usage, Model: c.Finish.Model, Provider: c.Finish.Provider})
}

// Close completes the tool calls and emits Finish. The caller has emitted all text before. If the
// API reports a regular stop but the completion has calls, the reason becomes
// [llm.FinishToolCalls]: some servers report "stop" for both.
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

// Malformed returns the error of a response that violates the provider's protocol. message must be
// fixed text, not data of the response.
func Malformed(message string) *llm.Error {
	return &llm.Error{Code: llm.CodeMalformedResponse, Message: message}
}

// IsPresent reports whether a JSON member exists and is not null.
func IsPresent(data json.RawMessage) bool { return len(data) > 0 && string(data) != "null" }
