package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// thread is one execution of agent.run or thread.parked: the address of a conversation in Temporal.
// It has one AG-UI run at a time, keeps the inputs that wait behind it, and takes decisions and
// tool results for the run's interrupts. Only workflow coroutines touch it, so it needs no lock.
type thread struct {
	run   *run
	phase phase
	// queue are the runs that wait for the thread, oldest first.
	queue []runs.Input
	// successor is the run that continues with the answers to the interrupts of the one that ended.
	// closing tells that there is none, and nothing to carry on: the next run starts in a new
	// execution.
	successor *runs.Input
	closing   bool
	// cancelNext tells that a cancel came in phaseSuspending: it is for the successor, since this
	// run's end is decided.
	cancelNext bool
	cancelRun  workflow.CancelFunc
	results    results
	notifier   notifier
}

// newThread begins or continues the run of in, as a thread. ctx ends with the run's cancel.
func newThread(ctx workflow.Context, in runs.Input, cancel workflow.CancelFunc) *thread {
	t := &thread{run: newRun(ctx, in), queue: in.Queue, cancelRun: cancel}
	t.run.thread, t.run.delegation.allowed = t, runs.MaxSubagents
	t.notifier = notifier{run: &t.run.in, interrupts: &t.run.interrupts, handedOver: map[*runs.Interrupts]bool{}}
	return t
}

// enter changes the phase. A transition that the table lacks is a defect of this package. It is
// logged, and made: a run that stopped here would be lost.
func (t *thread) enter(ctx workflow.Context, next phase) {
	if !t.phase.mayBecome(next) {
		workflow.GetLogger(ctx).Error("a run takes a transition that it should not", t.run.in.Run.LogAttrs(t.run.in.Agent, "from", t.phase, "to", next)...)
	}
	t.phase = next
}

// open returns the interrupts that the thread waits for after its run's end; nil = none.
func (t *thread) open() *runs.Interrupts { return t.run.interrupts.afterEnd }

// awaitBehind has the thread wait for interrupts when its run has ended; nil = for none.
func (t *thread) awaitBehind(ctx workflow.Context, w *runs.Interrupts) {
	if t.run.interrupts.afterEnd = w; w == nil {
		return
	}
	w.Spent = t.run.budget.Carried(t.run.in.Limits, workflow.Now(ctx))
	w.NoteOpened()
}

// waitsBehind returns the interrupts that the thread waits for after an end: those that people
// answer and, where the agent says what becomes of the next input, the client's tool calls. A
// queued run comes before tool calls that may be abandoned.
func (t *thread) waitsBehind(end ending) *runs.Interrupts {
	in := &t.run.in
	switch {
	case end.outcome == runs.OutcomeInterrupt, end.outcome == runs.OutcomeSuccess && end.waits != nil && end.waits.AsksPeople():
		return end.waits // people may have answered all of them while the run came to its end
	case end.outcome != runs.OutcomeSuccess, in.OnMissingResult == "", in.OnMissingResult == runs.OpenAbandon && len(t.queue) > 0:
		return nil
	}
	return end.waits
}

func (t *thread) handOverNotifications(ctx workflow.Context) {
	t.notifier.handOver(ctx, t.run.interrupts.notifiable())
}

func (t *thread) queued() []runs.Input { return t.queue }

func (t *thread) hasEnded() bool { return t.phase.isOver() }

// finish writes the run's terminal record.
func (t *thread) finish(ctx workflow.Context, end ending) (runs.Result, error) {
	if t.phase == phaseSuspending {
		t.enter(ctx, phaseFinishingSuspended)
	} else {
		t.enter(ctx, phaseFinishing)
	}
	t.run.interrupts.held = nil
	result, err := t.run.finish(ctx, end)
	t.closeSuspended(ctx, result.Outcome == runs.OutcomeInterrupt)
	t.enter(ctx, phaseEnded)
	return result, err
}

// suspend has no decision taken until resume, or the end of the run: its children end with their
// interrupts.
func (t *thread) suspend(ctx workflow.Context) {
	if t.phase == phaseRunning {
		t.enter(ctx, phaseSuspending)
	}
}

// resume continues a run whose children did not end after all. A cancel that came meanwhile is for
// this run.
func (t *thread) resume(ctx workflow.Context) {
	if t.phase != phaseSuspending {
		return
	}
	t.enter(ctx, phaseRunning)
	if t.cancelNext {
		t.cancelNext = false
		t.cancel()
	}
}

// closeSuspended is done with the interrupts of children that have ended: the run has ended with
// them, or nobody waits for their answers.
func (t *thread) closeSuspended(ctx workflow.Context, interrupted bool) {
	i := &t.run.interrupts
	if !interrupted {
		i.cancel(workflow.Now(ctx), i.suspended...)
	}
	i.suspended = nil
}

// cancel cancels the run. In phaseSuspending, the children that ended are the only ones who know
// what they have done: they begin again in the successor, which is cancelled.
func (t *thread) cancel() {
	if t.phase == phaseSuspending {
		t.cancelNext = true
		return
	}
	t.run.control.cancelled = true
	t.cancelRun()
}

// next returns the run that waits longest, with the others behind it; nil = none waits.
func (t *thread) next() *runs.Input {
	if len(t.queue) == 0 {
		return nil
	}
	next := t.run.in.HandedOver.Redirect(t.queue[0])
	next.Queue = t.queue[1:]
	return &next
}

// rename gives the execution of a run that has waited in a queue its own search attributes: it
// began with those of the run before it.
func (t *thread) rename(ctx workflow.Context) error {
	if t.run.in.Token == "" || t.run.log.HasBegun() {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, runs.AttributeAgent.ValueSet(t.run.in.Agent), runs.AttributeRun.ValueSet(t.run.in.Token))
}

// results are tool results that arrive by signal.
type results struct {
	come workflow.ReceiveChannel
	busy bool // one is on its way into the log
}
