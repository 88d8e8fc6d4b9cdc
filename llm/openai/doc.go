// Package openai streams completions from OpenAI's Chat Completions API and
// from the many servers that speak it (vLLM, Ollama, LiteLLM, DeepSeek, …).
//
//	model := openai.New(openai.FromEnv(os.Getenv))
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "gpt-5-mini", …}) { … }
//
// The official SDK makes the request and splits the event stream; its retries
// are off. What servers are known to get wrong is put right here: tool calls
// without an id, with a repeated id or with one index for all, characters cut
// in two, tool calls that end with the reason "stop", an error of null.
//
// Not guaranteed: content for which the API has no place (video, sound or
// documents by URL, media outside user messages) is left out.
package openai
