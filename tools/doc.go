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
// [Func], [Guard] and [NewRegistry] wrap a tool so that it follows common rules:
//
//	arguments ─► strict JSON ─► JSON Schema ─► the tool ─► bounded text ─► Result
//	                 │               │            │
//	                 └───────────────┴── no ──────┴──► Result with IsError
//
// The rules:
//
//   - Failures are results, because the model can react to them. Invalid arguments, a failed tool,
//     a timeout and a panic return a [Result] with IsError.
//   - A Go error from Call means that the call has no outcome: its context has ended, or its server
//     is unavailable ([*UnavailableError]). Only then may the caller retry, as often as the [Spec]
//     allows. A [*Raised] error means that the call waits for an answer of the user.
//   - A tool never receives arguments that violate its schema.
//   - A result that is too long is truncated with a note. It does not count as a failure, because a
//     model would repeat a failed call.
//   - This package does not retry.
package tools
