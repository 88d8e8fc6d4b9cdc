// Package workflows is the engine: Temporal workflows that decide what a run does next and when it
// is over. Workflow code is deterministic and small. Every call of a model, a tool or a server is
// an activity (package activities); what passes between them is in package runs; content is in the
// log (package stream), and never here.
//
// # Workflow types
//
// agent.run.v1 (Programs.AgentRun) runs a thread's AG-UI run.
//
//   - Input: [runs.Input]. Workflow ID: "thread/{tenant}/{thread}".
//   - State: thread (phase, queue, notifications) and its run (log positions, budget, steering, interrupts, pipeline).
//   - Updates: submit, steer, pause, resume, decide. Signals: cancel, tool_result; interrupt from children.
//   - Activities: model.call, tool.call, pipeline.advance, interrupt.announce, interrupt.notify, limit.interrupt,
//     tool.result, queue.await, run.finish. The first attempts of model.call and run.finish are local activities.
//   - Ends when its AG-UI run has ended and neither interrupts nor queued inputs are left.
//   - The next queued run, or the run that continues with decisions, begins in the same execution if that is younger than a
//     second. Otherwise agent.run continues as new with it.
//   - Continues as new as agent.run between turns when the history grows long or a newer worker version is current; as
//     thread.parked when it waits long.
//
// thread.parked.v1 ([ThreadParked]) is a thread that has waited long, for interrupts or because its
// run is paused.
//
//   - Input: [runs.ParkedInput]. Workflow ID, updates and signals: those of agent.run.
//   - Activities: interrupt.notify, tool.result.
//   - Continues as new as agent.run when the wait is over, as itself when its history grows long. It ends only when an
//     input answers or abandons all it waits for: the run of that input begins in a new execution.
//
// agent.child.v1 (Programs.AgentChild) is a subagent, which works for a tool call, or a branch of a
// pipeline. It is suspended if it ends with its interrupts, so that the run can end with them. The
// run that has the decisions restarts it from its state ([runs.SuspendedChild]).
//
//   - Input: [runs.ChildInput]. State: a run, without a thread.
//   - Signals: reply from its parent, interrupt from its children.
//   - Activities: model.call, tool.call, pipeline.advance, queue.await, subagent.answer.
//   - Ends with a [runs.ToolAnswer]; also when its parent tells it to end with its interrupts.
//   - Continues as new as itself between turns.
//
// interrupt.notifications.v1 ([SendNotifications]) sends the notifications that a thread has not
// sent when it ends or continues as new. Input: [runs.NotificationsInput]. Activity:
// interrupt.notify.
//
// thread.title.v1 ([WriteTitle]) has a model write the title of a thread. The first run of the thread
// starts it, if its agent has a model for titles, and does not wait for it. Input: [runs.TitleInput].
// Workflow ID: that of the thread, and "/title". Activity: title.write.
//
// webhook.deliver.v1 ([Deliver]) sends one event to one webhook for up to 24 hours. Input:
// [runs.Delivery]. Activity: webhook.send.
//
// schedule.fire.v1 ([ScheduleFire]) is one firing of a schedule: it starts a run, and lasts until
// that run is over. Input: [runs.FiringInput]. Signal: ended. Activities: schedule.run,
// schedule.status, schedule.cancel.
//
// # How an agent.run goes
//
//	model ──► tools ──► model ──► … ──► finish
//	  │         │ one activity per call, in parallel. A model call begins within the workflow task
//	  └─ ends with a message, with interrupts, or cancelled
//
// Lifecycle events such as STEP_FINISHED are written by the next activity: no activity writes an
// event alone. After in a [runs.Step] is the last record of the step's lane that the workflow
// knows; it fences late attempts of earlier steps.
//
// # Contexts
//
// A cancel of a run ends the context of its turns, and with it the run's activities and children.
// Work that a cancel must not stop has a disconnected context: the terminal record, replies to
// children, notifications, acknowledged decisions, and compensation.
//
// # Files
//
// thread.go is the thread, phase.go its phases. control.go has its signals and updates,
// submission.go and decide.go the larger handlers. successor.go waits after the end of a run,
// held.go within a turn, parked.go in thread.parked. continue.go has what one execution hands to
// the next, or one run to the next in the same execution.
//
// run.go and turn.go are the loop of turns, model_call.go the model call of a turn, tool_calls.go
// its tool calls. pipeline_executor.go and advance.go execute pipelines, branches.go their
// branches. child.go, children.go and child_interrupt.go are subagents and branches: how they run,
// and how their interrupts reach the thread. program.go is the API for agents that are Go programs.
package workflows
