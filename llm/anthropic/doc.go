// Package anthropic streams completions from Anthropic's Messages API and from compatible servers.
//
//	model := anthropic.New(anthropic.FromEnv(os.Getenv))
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "claude-sonnet-5-5", …}) { … }
//
// The official SDK sends the request and splits the event stream; its retries and traces are
// disabled. The Messages API differs from other providers in these points:
//
//   - Thinking blocks are signed. Every request returns them at their original position; the API
//     itself ignores those that it no longer needs.
//   - max_tokens is required, see [DefaultMaxTokens].
//   - Prompt caching is opt-in. The package sets cache breakpoints on tools, instructions and
//     conversation, so a turn reads the unchanged part of the prompt at the reduced cache price.
//   - Consecutive messages of one role are merged. Tool results come first in a user message, and
//     tool names and call IDs have a restricted alphabet.
//
// Limitations: content that the API does not support (audio, video) is omitted, and so is the
// participant's name of a message. The API has no idempotency keys: a repeated request produces a
// new completion.
package anthropic
