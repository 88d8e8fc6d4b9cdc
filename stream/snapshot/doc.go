// Package snapshot computes what a thread is at a record of its log: messages, state, runs, open
// interrupts and usage.
//
// A Snapshot is the fold of a thread's records up to a position (fold.go). Models, the API and
// readers use the same fold, so they agree. A step counts when its done record is read: an
// attempt that was superseded leaves nothing. A Store starts from a snapshot in memory (cache.go)
// or from a checkpoint (checkpoint.go), so a long thread costs the records since then. Several
// lanes may change the state and the list of messages concurrently; their changes count in the
// order of the log (journal.go), which is the order that readers see.
//
// The package also judges how the input of a run changes the conversation (acceptance.go,
// alignment.go), opens runs (opening.go), and begins a thread as a fork of another one (fork.go).
package snapshot
