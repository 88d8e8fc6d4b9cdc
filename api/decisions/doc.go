// Package decisions makes decisions about the interrupts of a thread, and takes results of client
// tool calls. They arrive with an input, by a route of their own, in a WebSocket frame, in a batch,
// or by a link; all of them use this package.
//
//	request ──► check: does it fit, may the caller decide ──► proposal in the log ──► update to the workflow ──► outcome
//
// The API checks, because it knows the caller's roles and the rules. The thread's workflow decides
// which decision counts, because it alone serializes concurrent decisions. The log has the
// contents; the workflow gets only digests and the sequence of the proposal.
//
// The answer tells the outcome: the decision stands, more votes are missing, or another decision
// stands. Every step may be repeated, so a client that gets a 503 sends the same decision again.
package decisions
