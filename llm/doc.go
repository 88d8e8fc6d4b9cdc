// Package llm defines the interface between Perdure and a language model: a request type, a stream
// of typed chunks, and one set of error codes.
//
//	Request ──► Model.Stream ──► TextDelta, ReasoningDelta, ToolCallStart, ToolCallDelta, …, Finish
//	                        └──► *Error (retryable or not, with the provider's Retry-After)
//
// Each provider is a package below this one (anthropic, gemini, openai, scripted). It implements
// one provider API and passes the shared conformance suite (llmtest). To stream a completion:
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
// Every provider follows these rules:
//
//   - A provider never retries. The caller's workflow engine is the only layer that does.
//   - A successful stream ends with exactly one Finish, sent after the provider API reported the
//     end of the completion. Any other end of a stream is an error.
//   - All text is valid UTF-8, and no delta is empty.
//   - A response is limited in bytes and in tool calls. A model that never stops ends in
//     [CodeResponseTooLarge].
//   - A request contains the JSON schema of the answer only in a form that the API accepts. Without
//     [Output.Native], only endpoints and models known to support it receive the schema. A schema
//     never makes a request fail.
//   - When ctx ends, the stream ends at once and the provider closes the connection.
//
// The package imports only the standard library and does no I/O.
package llm
