// Package openai streams completions from OpenAI's two APIs, and from servers
// that speak them too.
//
//	config := openai.FromEnv(os.Getenv)
//	model := openai.New(config)          // Chat Completions, which nearly all servers speak
//	model := openai.NewResponses(config) // Responses, which keeps reasoning between tool calls
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "gpt-5-mini", …}) { … }
//
//	Model ─────┐                                             ┌─► answer ───┐
//	           ├─ request ─► endpoint ─ HTTP ─► event stream ┤             ├─► llm.Chunk
//	Responses ─┘                                             └─► response ─┘
//
// The official SDK makes the request and splits the event stream; its retries
// are off. What servers are known to get wrong is put right here: tool calls
// without an id, with a repeated id or with one index for all, characters cut
// in two, tool calls that end with the reason "stop", an error of null.
//
// Not guaranteed: content for which an API has no place is left out. That is
// video everywhere; in Chat Completions sound or documents by URL and media
// outside user messages; in Responses sound.
package openai
