// Package tools says what a tool is: something a model may ask to have done.
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
//   - What goes wrong with a tool is told to the model, which can do something
//     about it: bad arguments, a failure, a timeout and a panic are all a
//     [Result] with IsError. A Go error from Call means that the call itself did
//     not come to an end: its context was canceled, or what carries the call is
//     down ([*UnavailableError]). Only that is worth a retry from outside, as often as its [Spec] allows.
//   - A tool never sees arguments that its schema refuses.
//   - A tool that has run is never reported as failed because its answer was
//     too long: the answer is cut, and says so. A model that believed in a failure would run it
//     again.
//   - Nothing here retries.
package tools
