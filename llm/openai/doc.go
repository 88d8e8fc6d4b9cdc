// Package openai streams completions from OpenAI's two APIs, Chat Completions and Responses, and
// from compatible servers.
//
//	config := openai.FromEnv(os.Getenv)
//	model := openai.New(config)          // Chat Completions, which nearly all servers implement
//	model := openai.NewResponses(config) // Responses, which keeps reasoning between tool calls
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "gpt-5-mini", …}) { … }
//
//	Model ─────┐                                             ┌─► answer ───┐
//	           ├─ request ─► endpoint ─ HTTP ─► event stream ┤             ├─► llm.Chunk
//	Responses ─┘                                             └─► response ─┘
//
// The official SDK sends the request and splits the event stream; its retries are disabled. Events
// are decoded into types of this package, because those of the SDK take three times as long. The
// package corrects known faults of compatible servers: tool calls without an ID, with a repeated ID
// or with the same index, characters split between events, the finish reason "stop" for tool calls,
// and an error member that is null.
//
// Limitations: content that an API does not support is omitted. That is video in both APIs; audio
// and documents by URL, and media outside user messages, in Chat Completions; and audio in
// Responses.
package openai
