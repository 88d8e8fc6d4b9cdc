// Package decisions carries out decisions about the interrupts of a thread, and takes results of
// client tool calls, however they come: with an input, by a route, a frame, a batch or a link.
//
// A decision is checked (does it fit the interrupt, may the caller decide), written to the log, and
// sent to the thread's workflow, which decides what counts. The answer names what became of it: it
// stands, more votes are missing, or another decision stands.
package decisions
