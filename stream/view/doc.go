// Package view shows a run, or the runs of a thread, to one reader as AG-UI events.
//
//	Tail ──records──► View ──► Projection ──frames──► client
//	                              │
//	                              └── snapshots at a record (package snapshot)
//
// A View (view.go) reads the past from where the reader starts (start.go), and then live records. A
// Projection (projection.go) decides which events the reader is sent, in the protocol generation
// that the reader understands (generation.go). A reader without a cursor may join: it gets
// snapshots instead of all earlier events (join.go). A reader of a thread is shown one run after
// the other (thread_projection.go).
//
// When an attempt of a step is superseded, its events are retracted for the readers that saw them
// (hidden_attempt.go, correction.go). Retractions, closing events and snapshots are computed for
// each reader, and are never logged.
package view
