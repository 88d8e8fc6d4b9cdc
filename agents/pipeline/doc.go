// Package pipeline interprets a tree of steps: it finds the next action after an event.
//
//	Advance(tree, position, event, environment) ──► changes, action, next position
//
// The activity pipeline.advance calls it; the workflow carries the actions out (package workflows).
// Rules:
//   - Advance is pure. The caller stores the position, tells clients the changes and carries out the action. Then it calls Advance
//     with the event of how the action ended.
//   - A branch of a parallel or map step has a position of its own, which ends with its BranchRef. It begins with [EventBegun], and ends
//     with an action that has nothing set, or Failed.
//   - A branch whose last BranchRef's path ends with ~undo compensates a branch that has ended.
//   - Outputs are in the state below /perdure.steps. Each has a place that no other branch writes.
//   - A failure names steps and keys, and has no content.
//
// A path identifies a step in all its rounds and tries, such as "draft/2/write~3": round 2 of the
// loop "draft", try 3 of its step "write". The mark ~undo stands for a step's compensation, ~error
// for its onError steps.
//
// interpreter.go has the transitions between steps, step.go begins them, event.go applies the
// events, compensation.go undoes finished steps, open_step.go maps frames to steps and paths, and
// output.go writes outputs.
package pipeline
