// Package stream is the log: every event of every run, in order, in one NATS JetStream stream.
//
//	activity ──Begin──► Attempt ──frames──► lane ──► JetStream ──► Follower ──► Tail ──► package view ──► client
//	                                                     │        one consumer
//	                                                     └─► package snapshot ──► messages and state
//
// Writing (lane.go, attempt.go): a lane is a subject with one writer, which has one message in
// flight. The message's expected last sequence is its fence: it orders the lane, and refuses a
// writer that another one has replaced. Changes of the state that depend on its value are fenced
// across lanes as well (mark.go). Inputs and decisions of clients are proposals (proposal.go).
//
// Reading (read.go, follow.go, consumer.go): live records come from one consumer per process,
// earlier ones by direct gets; a Tail joins them by sequence. A cursor (cursor.go) is the position
// of a client.
//
// Threads: a bucket has the list of threads (index.go). A thread may begin as a fork of another one
// (fork.go), and be removed (purge.go). Package snapshot computes a thread's messages and state at
// a record; package view projects the records to the events of one reader.
//
// Rules:
//   - A write is durable when JetStream has acknowledged it, and not before.
//   - A writer is fenced only if the lane has a record of another writer, never because of an error
//     code.
//   - A read names the record that it must contain. A log that lacks it is lost, not empty
//     (ErrLogLost).
//   - Retractions, closing events and snapshots are computed by package view, and never logged.
//   - A terminal record seals its run: no later record of the run counts for any reader.
package stream
