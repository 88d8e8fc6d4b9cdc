// Package runs is what passes between the API, the workflows and the activities of a run: the names
// that Temporal knows, the inputs and outputs of workflows, activities, updates and signals, and
// the state that moves with a run from one execution to the next, with the rules of that state.
//
// Everything here is data: no function blocks, reads a clock, or calls a server. All of it may be
// part of a workflow's history, so it holds references and never content. Inputs, answers and
// updates refer to content by IDs, sequences of the log, and digests; each takes at most
// [MaxPayload] bytes (see [DataConverter]).
//
// The central types are [Input], which starts a run and carries it on; [Interrupts], which a run
// waits for; [PipelinePosition], which is how far a pipeline has come; and [Budget], which is what
// the run has used of its [Limits].
//
// The files are of three kinds. The central ones are:
//
//   - payloads: names.go (what Temporal knows), input.go, step.go, model_call.go, tool_call.go,
//     advance.go, finish.go, update.go, subagent.go, schedule.go, errors.go
//   - rules of interrupts: interrupt.go, interrupts.go, vote.go, decision.go, notification.go
//   - the progress of a run: pipeline_position.go, lane_sequences.go, branches.go, budget.go
package runs
