// Package anthropic streams completions from Anthropic's Messages API and from
// what speaks it.
//
//	model := anthropic.New(anthropic.FromEnv(os.Getenv))
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "claude-sonnet-5-5", …}) { … }
//
// The official SDK makes the request and splits the event stream; its retries
// and its traces are off. What the API wants otherwise than others do:
//
//   - Thinking is signed, and goes back where it stood, with every request. The
//     API itself passes over what it no longer needs.
//   - A limit of output is required: see [DefaultMaxTokens].
//   - Prompts are cached only where that is asked for, which is done for tools,
//     instructions and the conversation: a turn of an agent then pays for what
//     is new in it, and a tenth for the rest.
//   - Two messages of one role are one, results of tools come first in it, and
//     names and ids have an alphabet of their own.
//
// Not guaranteed: content for which the API has no place (sound, films) is left
// out, and so is the name of a speaker. The API knows no idempotency key: a
// repeated request is a new completion.
package anthropic
