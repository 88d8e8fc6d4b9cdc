// Package activities has the Temporal activities: the side effects that workflows schedule. An
// activity calls a model or a tool, writes to the log, publishes notifications, or starts runs.
// Package workflows decides which activity runs next.
//
//	workflow ──ModelCall{step, after}──► CallModel ──chunks──► narrator ──events──► lane ──► log
//	         ◄──ModelAnswer{seq, ids}──┘     ▲ conversation: the snapshot of the log
//
// An activity that does a step of a run goes through these stages:
//
//   - It decorates its context with the run (inStep), defers recoverPanic, and begins the
//     attempt with its heartbeats (beginAttempt, or beginCancellable for work that a cancel ends).
//   - It writes the lifecycle events of the step (openStep and its variants, stream.Log.OpenStep). The
//     first attempt writes them; later attempts find them.
//   - It takes the lane with stream.Log.Begin. A model call does this and the stage before with one
//     record (stream.Log.BeginStep). If an earlier attempt has written the done record, the activity
//     returns the answer in that record and does nothing else.
//   - It does the work and writes the done record, which has the finished messages and the answer.
//
// Rules:
//
//   - Content comes from the log and goes to the log. The workflow receives references, numbers and
//     codes, because its history is kept by Temporal.
//   - Everything before Begin must be repeatable. Everything after Begin is fenced: the writes of
//     an attempt that another one has replaced are refused.
//   - An activity returns its error through activityError (errors.go), which decides whether Temporal
//     retries it.
//   - Cancelled work is a result with the outcome cancelled, not an error. The events that the
//     model or tool has emitted so far stay in the log, and the step is closed.
//
// Package prompt makes the request for a model, package narration turns chunks and reports into
// AG-UI events.
package activities
