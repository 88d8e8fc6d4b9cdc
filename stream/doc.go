// Package stream is the log: every event of every run, in order, in one NATS JetStream stream, and what is read out of it.
//
//	activity ──Begin──► Attempt ──frames──► lane ──► JetStream ──► Follower ──► Tail ──► View ──► client
//	                                                     │        one consumer          Projection
//	                                                     └─► Reduce ──► conversation and state
//
// Writing (lane.go, attempt.go): a lane is a subject with one writer, which has one message in flight. The message's expected
// last sequence is its fence: it orders the lane, and refuses a writer that another one has replaced. Changes of the state
// that depend on its value are fenced across lanes as well (mark.go). What comes from outside is a proposal
// (proposal.go).
//
// Reading (follow.go, consumer.go, view.go): live records come from one consumer per process, earlier ones by direct gets; they
// are joined by sequence. A View shows one run to one reader, in the protocol generation that the reader speaks
// (profile.go). A Projection (project.go) decides which events that reader is sent. A reader without a cursor joins
// (join.go). A reader of a thread is shown run after run (thread.go).
//
// Reducing (reduce.go, fold.go, conversation.go): one function computes messages and state at a record, for models, snapshots
// and the API. It starts from what this process has in memory (reductions.go) or from a checkpoint (checkpoint.go), so a
// long thread costs what was added since. Changes on different lanes are reduced in the order of the log (journal.go), in
// which readers see them.
//
// Threads: a bucket has the list of threads (index.go), and a thread's reduction has its runs (history.go). A thread may begin
// as a fork of another one (fork.go), and be removed (purge.go).
//
// Rules:
//   - A write is durable when JetStream has acknowledged it, and not before.
//   - A writer is fenced only if the lane has a record of another writer, never because of an error code.
//   - A read names the record that it must contain. A log that lacks it is lost, not empty (ErrLogLost).
//   - Retractions, closing events and snapshots are projected, and not in the log.
//   - A terminal record seals its run: no later record of the run counts for any reader.
package stream
