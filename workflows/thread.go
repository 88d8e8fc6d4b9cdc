package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// thread is one execution of agent.run or thread.parked: the address of a conversation in Temporal.
// It has one AG-UI run at a time, queues further inputs, and takes decisions and tool results for
// the run's interrupts. It may have several runs, one after the other (continueAs).
//
// Update and signal handlers call it concurrently with the coroutine of the run, but workflow
// coroutines run one at a time. So it needs no lock, and its state changes only where a coroutine
// blocks.
type thread struct {
	run   *run
	began time.Time // when this execution began: the time of its first workflow task
	// phase is where the run is in its life; phase.go has the transitions. Only setPhase changes
	// it, except that ThreadParked starts in phaseEnded.
	phase phase
	// queue has the runs that wait for the thread (onBusy: enqueue or interrupt), oldest first. An
	// input with onBusy: interrupt is first.
	queue []runs.Input
	// successor is the run that continues with the answers to the interrupts of the run that ended;
	// nil = no input has answered them. closing means that an input has answered or abandoned
	// everything, and nothing is to be carried on: the execution ends, and the API starts the next
	// run in a new one.
	successor *runs.Input
	closing   bool
	// cancelNext means that a cancel arrived in phaseSuspending. It applies to the successor, since
	// this run's end is decided.
	cancelNext bool
	cancelRun  workflow.CancelFunc // ends the context of the run's turns (withCancel)
	results    results
	notifier   notifier
	lastUpdate int             // length of the history when an update was last accepted; -1 = none was
	title      workflow.Future // the start of thread.title; nil = this execution starts none
}

// newThread returns the thread of in's run, which it begins or continues. ctx is the execution's
// root context. The caller then calls withCancel.
func newThread(ctx workflow.Context, in runs.Input) *thread {
	t := &thread{run: newRun(ctx, in), began: workflow.Now(ctx), queue: in.Queue, lastUpdate: -1}
	t.run.thread, t.run.delegation.allowed = t, runs.MaxSubagents
	t.notifier = notifier{run: &t.run.in, interrupts: &t.run.interrupts, detached: map[*runs.Interrupts]bool{}}
	return t
}

// withCancel returns the context for the turns of the run, which cancel ends. Each AG-UI run of an
// execution has one of its own, except that a program keeps that of its first run.
func (t *thread) withCancel(ctx workflow.Context) workflow.Context {
	ctx, t.cancelRun = workflow.WithCancel(ctx)
	return ctx
}

// setPhase changes the phase. A transition that the table lacks is a defect of this package.
// setPhase logs it, and makes it all the same: an execution that failed here would lose its run.
func (t *thread) setPhase(ctx workflow.Context, next phase) {
	if !t.phase.mayBecome(next) {
		workflow.GetLogger(ctx).Error("invalid phase transition", t.run.in.Run.LogAttrs(t.run.in.Agent, "from", t.phase, "to", next)...)
	}
	t.phase = next
}

// interruptsAfterEnd returns the interrupts that the thread waits for after its run's end; nil =
// none. It is set before the terminal record is written (see AgentRun).
func (t *thread) interruptsAfterEnd() *runs.Interrupts { return t.run.interrupts.afterEnd }

// setInterruptsAfterEnd makes set the interrupts that the thread waits for after its run's end; nil
// = none. It does not block. It adds the budget that the next run takes over, and the notification
// that the interrupts are open.
func (t *thread) setInterruptsAfterEnd(ctx workflow.Context, set *runs.Interrupts) {
	t.run.interrupts.afterEnd = set
	if set == nil {
		return
	}
	set.Spent = t.run.budget.Carried(t.run.in.Limits, workflow.Now(ctx))
	set.NoteOpened()
}

// announceInterruptsAfterEnd notes that the terminal record seq has announced the interrupts. It
// cancels them if a cancel for the successor has arrived.
func (t *thread) announceInterruptsAfterEnd(ctx workflow.Context, seq uint64) {
	t.interruptsAfterEnd().AnnouncedBy = seq
	if t.cancelNext {
		t.interruptsAfterEnd().CancelAll(workflow.Now(ctx))
	}
}

// chooseInterruptsAfterEnd returns the interrupts that the thread waits for after an ending; nil =
// the thread continues with its queue, or closes. It waits for approvals and questions in any case.
// It waits for client tool calls only if the agent has a policy for inputs without results
// (OnMissingResult). With OpenAbandon a queued run comes first.
func (t *thread) chooseInterruptsAfterEnd(end ending) *runs.Interrupts {
	in := &t.run.in
	switch {
	case end.outcome == runs.OutcomeInterrupt, end.outcome == runs.OutcomeSuccess && end.interrupts != nil && end.interrupts.AsksPeople():
		return end.interrupts // with OutcomeSuccess if decisions arrived for all of them in the meantime
	case end.outcome != runs.OutcomeSuccess, in.OnMissingResult == "", in.OnMissingResult == runs.OpenAbandon && len(t.queue) > 0:
		return nil
	}
	return end.interrupts
}

// detachNotifications starts workflows for pending notifications about resolved interrupts (see
// threadControl).
func (t *thread) detachNotifications(ctx workflow.Context) {
	t.notifier.detach(ctx, t.run.interrupts.notifiable())
}

func (t *thread) isNotifying() bool { return t.notifier.next() != nil }

// noteUpdate notes that an update was accepted.
func (t *thread) noteUpdate(ctx workflow.Context) {
	t.lastUpdate = workflow.GetInfo(ctx).GetCurrentHistoryLength()
}

func (t *thread) hasNewUpdate(ctx workflow.Context) bool {
	return t.lastUpdate == workflow.GetInfo(ctx).GetCurrentHistoryLength()
}

func (t *thread) queued() []runs.Input { return t.queue }

// isEnding reports whether the run's terminal record is written, or is about to be.
func (t *thread) isEnding() bool { return t.phase.isEnding() }

// finish writes the run's terminal record and enters phaseEnded, also if that fails. The result's
// outcome differs from end.outcome if the log has an earlier terminal record, or another execution
// owns the run.
func (t *thread) finish(ctx workflow.Context, end ending) (runs.Result, error) {
	if t.phase == phaseSuspending {
		t.setPhase(ctx, phaseFinishingSuspended)
	} else {
		t.setPhase(ctx, phaseFinishing)
	}
	t.run.interrupts.held = nil
	result, err := t.run.finish(ctx, end)
	t.closeSuspended(ctx, result.Outcome == runs.OutcomeInterrupt)
	t.setPhase(ctx, phaseEnded)
	return result, err
}

// stopDecisions stops decisions from being taken until allowDecisions, or until the end of the run,
// because its children end with their interrupts. A decision in between would be lost: the
// children's state is on its way.
func (t *thread) stopDecisions(ctx workflow.Context) {
	if t.phase == phaseRunning {
		t.setPhase(ctx, phaseSuspending)
	}
}

// allowDecisions continues a run whose children did not end after all. It applies a cancel that
// arrived since stopDecisions to this run. It does nothing outside of phaseSuspending.
func (t *thread) allowDecisions(ctx workflow.Context) {
	if t.phase != phaseSuspending {
		return
	}
	t.setPhase(ctx, phaseRunning)
	if t.cancelNext {
		t.cancelNext = false
		t.cancel()
	}
}

// closeSuspended forgets the interrupts of suspended children. If interrupted is true, the run has
// ended with them, and afterEnd keeps them. Otherwise no decision can take effect: they are
// cancelled, and approvers are notified of that.
func (t *thread) closeSuspended(ctx workflow.Context, interrupted bool) {
	i := &t.run.interrupts
	if !interrupted {
		i.cancel(workflow.Now(ctx), i.suspended...)
	}
	i.suspended = nil
}

// cancel cancels the run's context, so that its activities and children end. In phaseSuspending the
// cancel is for the successor: only the suspended children know what they have done, so they
// restart in the successor to compensate.
func (t *thread) cancel() {
	if t.phase == phaseSuspending {
		t.cancelNext = true
		return
	}
	t.run.control.cancelled = true
	t.cancelRun()
}

// nextQueued returns the oldest queued run, with the rest of the queue in its Queue; nil = the
// queue is empty. After a handoff the run begins with the agent that has the thread now.
func (t *thread) nextQueued() *runs.Input {
	if len(t.queue) == 0 {
		return nil
	}
	next := t.run.in.HandedOver.Redirect(t.queue[0])
	next.Queue, next.BegunBy = t.queue[1:], workflow.GetInfo(t.run.executionCtx).OriginalRunID
	return &next
}

// upsertSearchAttributes sets the search attributes of a run that did not start the workflow: it
// was queued, or continues after interrupts, and the execution has those of the run before it. The
// API's start request sets those of the other runs.
func (t *thread) upsertSearchAttributes(ctx workflow.Context) error {
	if t.run.in.Token == "" || t.run.log.HasBegun() {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, runs.AttributeAgent.ValueSet(t.run.in.Agent), runs.AttributeRun.ValueSet(t.run.in.Token))
}

// results receives the tool results that arrive by signal.
type results struct {
	signals workflow.ReceiveChannel // of the signal tool_result
	busy    bool                    // the activity tool.result is storing a result
}
