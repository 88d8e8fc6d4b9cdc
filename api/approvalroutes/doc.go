// Package approvalroutes serves decisions about interrupts and results of client tool calls, the
// inbox of the interrupts of all threads, the audit of a thread, and links that decide.
package approvalroutes
