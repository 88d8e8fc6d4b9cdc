// Package wire contains what the HTTP providers share: limits for a response, decoding of text that
// arrives in fragments, tool calls whose fragments interleave, error messages without secrets, and
// the JSON Schema subset of each API.
//
//	http.Client ─ transport (limits) ─► SDK decodes SSE ─► Unquote, Mender, Calls ─► llm.Chunk
//	                                                   └─► Quote, RetryAfter ──────► *llm.Error
//
// A provider package implements [Reply] for the events of its API, usually by embedding a
// [Completion], and passes it to [Stream].
package wire
