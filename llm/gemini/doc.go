// Package gemini streams completions from Google's Gemini API.
//
//	model := gemini.New(gemini.FromEnv(os.Getenv))
//	for chunk, err := range model.Stream(ctx, &llm.Request{Model: "gemini-3-flash", …}) { … }
//
// The wire is written here, over net/http. Google's SDK takes requests through
// maps, which lose the order of a tool's schema and the digits of its numbers,
// and decodes strings in which a character was cut in two to nothing.
//
// What the API does otherwise than others:
//
//   - Signatures of thinking stand on parts of the answer, and have to come back
//     on the same parts. Where a call has none because another provider's model
//     made it, the API's own word for that stands in its place.
//   - Calls come whole, often without an id; they get one here.
//   - A prompt that is blocked has no answer: that is an error, and not an end.
//
// Not guaranteed: [llm.Request.ParallelToolCalls], for which the API has no
// member; content of types that it does not take; the name of a speaker. The
// API knows no idempotency key: a repeated request is a new completion.
package gemini
