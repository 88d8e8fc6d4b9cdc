// Package workflows is the engine: Temporal workflows that decide what a run does next and when it
// is over. Workflow code is deterministic and small. Whatever calls a model, a tool or a server is
// an activity (package activities); what passes between them is in package runs; content is in the
// log (package stream), and never here.
//
// # Workflow types
//
// agent.run.v1 (Programs.AgentRun) runs a thread's AG-UI run.
//
//   - Input: [runs.Input]. Workflow ID: "thread/{tenant}/{thread}".
//   - State: thread (phase, queue, interrupts, notifications) and its run (log positions, budget, steering, pipeline).
//   - Updates: submit, steer, pause, resume, decide. Signals: cancel, tool_result; interrupt from children.
//   - Activities: model.call, tool.call, pipeline.advance, interrupt.announce, interrupt.notify, limit.interrupt,
//     tool.result, queue.await, run.finish.
//   - Ends when its AG-UI run has ended and neither interrupts nor queued inputs are left.
//   - Continues as new as agent.run between turns when the history grows long or a newer worker version is current, and with
//     the next queued run or the run that continues with decisions; as thread.parked when it waits long.
//
// thread.parked.v1 ([ThreadParked]) is a thread that has waited long, for interrupts or since it is
// paused.
//
//   - Input: [runs.ParkedInput]. Workflow ID, updates and signals: those of agent.run.
//   - Activities: interrupt.notify, tool.result.
//   - Continues as new as agent.run when the wait is over, as itself when its history grows long. It ends only when an
//     input answers or abandons all it waits for: the run of that input begins in a new execution.
//
// agent.child.v1 (Programs.AgentBranch) is a subagent, which works for a tool call, or a branch of
// a pipeline.
//
//   - Input: [runs.ChildInput]. State: a run, without a thread.
//   - Signals: reply from its parent, interrupt from its children.
//   - Activities: those of agent.run but run.finish, and subagent.answer.
//   - Ends with a [runs.ToolAnswer]; also when its parent tells it to end with its interrupts.
//   - Continues as new as itself between turns.
//
// interrupt.notifications.v1 ([SendNotifications]) sends the notifications that a thread has left.
// Input: [runs.NotificationsInput]. Activity: interrupt.notify.
//
// webhook.deliver.v1 ([Deliver]) sends one event to one webhook for up to 24 hours. Input:
// [runs.Delivery]. Activity: webhook.send.
//
// schedule.fire.v1 ([ScheduleFire]) starts the run of a time of a schedule, and lasts until that
// run is over. Input: [runs.FireInput]. Signal: ended. Activities: schedule.run, schedule.status,
// schedule.cancel.
//
// # How an agent.run goes
//
//	model ──► tools ──► model ──► … ──► finish
//	  │         │ one activity per call, in parallel
//	  └─ ends with a message, with interrupts, or cancelled
//
// Lifecycle events such as STEP_FINISHED are written by the next activity: no activity writes an
// event alone. After in a [runs.Step] is the highest sequence of the log that the workflow knows;
// it fences late attempts of earlier steps.
//
// # Files
//
// thread.go, control.go, submission.go, decide.go and successor.go are the thread; phase.go its
// phases. run.go is the run's loop of turns, tool_calls.go the tool calls of a turn, interpreter.go
// and advance.go pipelines, branches.go their branches. child.go, children.go and
// child_interrupt.go are subagents and branches: how they run, and how their interrupts reach the
// thread. program.go is the API for agents that are Go programs.
package workflows
