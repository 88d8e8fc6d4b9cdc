// Package gemini streams completions from Google's Gemini API.
//
//	model := gemini.New(gemini.FromEnv(os.Getenv))
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "gemini-3-flash", …}) { … }
//
// The package implements the protocol itself, over net/http. Google's SDK converts requests to
// maps, which changes the member order and the number literals of a tool's schema. It also decodes
// a string that contains half a character to an empty string.
//
// The Gemini API differs from other providers in these points:
//
//   - Thought signatures belong to parts of the answer, and requests must return them on the same
//     parts. A call of another provider's model has no signature; it gets the placeholder that the
//     API defines for this case.
//   - Tool calls arrive complete, often without an ID. The package generates IDs.
//   - A blocked prompt has no answer. The package reports it as an error and not as a Finish.
//
// Limitations: [llm.Request.ParallelToolCalls] is ignored, because the API has no such option.
// Content of unsupported types and the participant's name of a message are omitted. The API has no
// idempotency keys: a repeated request produces a new completion.
package gemini
