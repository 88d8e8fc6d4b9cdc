// Package tools defines tools: functions that a model may call.
//
//	add := tools.Func("add", "Adds two numbers.",
//		func(ctx context.Context, in struct{ A, B float64 }) (float64, error) {
//			return in.A + in.B, nil
//		}, tools.Idempotent())
//	registry, err := tools.NewRegistry(add)
//	…
//	tool, _ := registry.Lookup("add")
//	result, err := tool.Call(ctx, tools.Call{ID: "c1", Arguments: json.RawMessage(`{"A":1,"B":2}`)})
//
// Every tool that comes out of [Func] or a [Registry] is guarded:
//
//	arguments ─► strict JSON ─► JSON Schema ─► the tool ─► bounded text ─► Result
//	                 │               │            │
//	                 └───────────────┴── no ──────┴──► Result with IsError
//
// The rules:
//
//   - The model is told about failures, because it can react: invalid arguments, a failure, a timeout and a panic are a [Result] with IsError. A Go
//     error from Call means that the call has no outcome: its context has ended, or its server cannot be reached ([*UnavailableError]). Only then
//     may the caller retry, as often as the [Spec] allows.
//   - A tool never receives arguments that its schema refuses.
//   - A long answer is cut, with a note, and is no failure: a model that is told of a failure would call the tool again.
//   - This package does not retry.
package tools
