// Package dispatch starts and cancels runs. It starts the workflow of a thread, or offers the run
// to the workflow that occupies the thread. The API uses it for clients, workers use it for
// schedules.
//
//	proposal in the log ──► StartOrOffer ──► started, queued, refused, or: load the thread again
//
// The log decides which runs there are; Temporal decides that a thread has one workflow at a time.
// So a caller of StartOrOffer loads the thread's snapshot first, and again each time that
// StartOrOffer returns placed = false, up to MaxRounds times.
package dispatch
