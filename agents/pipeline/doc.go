// Package pipeline walks a tree of steps: from what has happened to what comes next.
//
//	Advance(tree, cursor, what has happened, what expressions see) ──► changes to tell, what is to be done, next cursor
//
// The rules:
//
//   - It is pure. Who calls it stores the cursor, tells the changes and does what is to be done; then it comes back with how that ended.
//   - A branch is a walk of its own. Its cursor has the fork behind those of the walk that forked, and begins with
//     [EventBegun]; it ends with an action that has nothing set, or Failed.
//   - A branch whose fork's path ends with ~undo compensates for a branch that was done. Nothing else tells it apart.
//   - Outputs go to the state below /steps, each to a place that no other branch writes to.
//   - A failure names steps and keys, and no content.
package pipeline
