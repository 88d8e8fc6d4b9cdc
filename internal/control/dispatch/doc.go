// Package dispatch brings runs to their threads: it starts a thread's workflow, or offers the run
// to the one that occupies the thread, and cancels runs. The api does so for clients, the worker
// for schedules.
//
//	proposal in the log ──► Place ──► started, queued or refused; or look at the thread again
//
// The log decides who a run is, Temporal only that one at a time is alive on a thread: whoever
// places a run looks at the log first, and again for as long as Place says so.
package dispatch
