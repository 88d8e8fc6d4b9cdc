// Package workflows decides: what a run does next, and when it is over. Everything here is
// deterministic and small; everything that touches the world is an activity.
//
//	agent.run.v1:   model ──► tools ──► model ──► … ──► finish
//	                  │         │ one activity per call, in parallel
//	                  └─ ends with a message, tool calls, or a cancelled outcome
//
// Rules:
//   - Content never comes here. Inputs, answers and updates hold ids, sequences of the log, digests
//     and small decisions, at most MaxPayload bytes each (see DataConverter).
//   - One struct in, one struct out; names are stable (contract.go). A new field is optional.
//   - After is how a decision names what an activity must have seen: the highest sequence that the
//     log acknowledged. It is also what fences late attempts of old steps off.
//   - Lifecycle events ride with the activity that comes next; there is no activity per event.
package workflows
