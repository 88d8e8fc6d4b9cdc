// Package stream is the log: every event of every run, in order, in one NATS JetStream stream, and
// what can be read out of it.
//
//	activity ──Begin──► Attempt ──frames──► lane ──► JetStream ──► Follower ──► Tail ──► View ──► client
//	                                                     │        one consumer          Projection
//	                                                     └─► Reduce ──► conversation and state
//
// Writing (lane.go, attempt.go): a lane has one writer and one message in flight; its expected last
// sequence is order, batching and fence in one. Who changes the state by what it was is fenced by it as well (mark.go). What comes from outside is a proposal (proposal.go).
//
// Reading (follow.go, consumer.go, view.go): live records come from one consumer per process, past ones
// by direct gets, spliced by sequence. A View shows one run to one reader; a Projection (project.go) decides
// what that reader sees, in the protocol generation that it speaks (profile.go). A reader that has
// nothing joins (join.go); one of a thread is shown run after run (thread.go).
//
// Reducing (reduce.go, fold.go, conversation.go): messages and state at a record are one function for
// models, snapshots and the api. It starts from the reductions that this node keeps (reductions.go), or
// from a checkpoint beside the log (checkpoint.go), so a long thread costs what came since. What lanes change together is reduced in the order of the log
// (journal.go), so that readers, who are shown it in that order, end with the same.
//
// Threads: which there are is in a bucket beside the log (index.go), what runs each has had in its reduction
// (history.go). A thread may begin with what another one was (fork.go), and be removed (purge.go).
//
// Rules:
//   - Acknowledged means durable. Nothing else does.
//   - Only a foreign record in the lane means fenced, never an error code by itself.
//   - A read names what it must contain; a log that lacks it is lost, not empty.
//   - Withdrawals, closings and snapshots are projected, never logged.
//   - A terminal record seals its run: nothing behind it counts, for any reader.
package stream
