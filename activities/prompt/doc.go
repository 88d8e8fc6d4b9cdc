// Package prompt turns a conversation into the messages that a model receives. Activities use it
// for model calls and for summaries. It is pure: it reads no log and calls no model.
//
//	entries of a snapshot ──Window──► entries that fit ──Messages──► the request's messages
//
// Files:
//
//   - prompt.go makes messages: with the reasoning of each answer, and without tool calls that have
//     no result
//   - window.go chooses the entries that fit the room of the model
//   - estimate.go estimates tokens
//   - content.go converts content parts in both directions, reasoning.go the reasoning that a
//     provider wants back
//   - dropped_part.go finds content parts that a provider cannot take, before the call
package prompt
