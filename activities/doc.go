// Package activities does what workflows decide. It holds the only side effects of a run: calling
// the model, calling tools, and writing to the log.
//
//	workflow ──ModelCall{step, after}──► CallModel ──chunks──► narrator ──events──► lane ──► log
//	         ◄──ModelAnswer{seq, ids}──┘     ▲ conversation, by reduction of the log
//
// Rules:
//   - Content comes from the log and goes to the log. What goes back to the workflow is references.
//   - Whoever writes takes the lane over first; a step that an earlier attempt finished is answered
//     from its last record and not done again.
//   - Errors are mapped once, in errors.go: retryable, not, or fenced.
//   - Cancelled work is a result, not an error: what was said is kept and closed.
package activities
