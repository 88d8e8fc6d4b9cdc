// Package llm says what a language model is to Perdure: a request in, a stream
// of typed chunks out, and one error vocabulary.
//
//	Request ──► Model.Stream ──► TextDelta, ReasoningDelta, ToolCallStart, ToolCallDelta, …, Finish
//	                        └──► *Error (retryable or not, with the provider's own delay)
//
// Providers live one folder below (anthropic, gemini, openai, scripted), know one wire
// protocol each, and pass the same conformance suite (llmtest). A use:
//
//	var answer llm.Collector
//	for chunk, err := range model.Stream(ctx, req) {
//		if err != nil {
//			return err // *llm.Error, or the cause of ctx
//		}
//		answer.Add(chunk)
//	}
//	message, finish := answer.Message(), answer.Finish() // *llm.Finish
//
// The rules a provider keeps:
//
//   - It never retries. One layer does, and that is the caller's workflow engine.
//   - Finish comes exactly once, last, and only after the provider itself said
//     that the completion is over; everything else that ends a stream is an error.
//   - All text is valid UTF-8, and no delta is empty.
//   - One response is bounded in bytes and in tool calls, so a model that does
//     not stop ends in a clear error.
//   - The schema of an answer is handed over only in a form that the API takes, and
//     unasked only to whom it is known to take it: no request is refused for it.
//   - When ctx ends, the stream ends at once and the connection is closed.
//
// The package imports the standard library alone, and nothing that does I/O.
package llm
