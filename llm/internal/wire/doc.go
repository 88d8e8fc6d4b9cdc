// Package wire is what the HTTP providers have in common: bounds on a
// response, text that arrives in broken pieces, tool calls that arrive
// interleaved, and errors that must not quote what is secret.
//
//	http.Client ─ Transport (bounds) ─► SDK decodes ─► Unquote, Mender, Calls ─► llm.Chunk
//	                                               └─► Quote, RetryAfter ──────► *llm.Error
package wire
