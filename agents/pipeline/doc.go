// Package pipeline interprets a tree of steps: from what has happened to what to do next.
//
//	Advance(tree, cursor, event, environment) ──► changes, action, next cursor
//
// Rules:
//   - Advance is pure. The caller stores the cursor, tells clients the changes and carries out the action. Then it calls Advance
//     with the event of how the action ended.
//   - A branch of a parallel or map step has a cursor of its own, which ends with its BranchRef. It begins with [EventBegun], and ends
//     with an action that has nothing set, or Failed.
//   - A branch whose last BranchRef's path ends with ~undo compensates a branch that was done.
//   - Outputs are in the state below /steps. Each has a place that no other branch writes.
//   - A failure names steps and keys, and has no content.
//
// interpreter.go has the transitions between steps, step.go begins them, event.go takes the events,
// compensation.go undoes finished steps.
package pipeline
