package workflows

import (
	"slices"
	"time"

	"github.com/perdure/perdure/runs"
)

// interrupts are all interrupts that a run knows of in this execution: those that are open, and
// those that are resolved while notifications about them are pending. A set moves from held,
// concurrent or suspended to answered or earlier, and is dropped when its notifications are sent.
// Only workflow coroutines touch it.
type interrupts struct {
	held     *runs.Interrupts   // of the current turn; nil = the turn does not wait
	answered *runs.Interrupts   // the last that were held: repeated decisions find them
	earlier  []*runs.Interrupts // resolved before, with pending notifications
	// concurrent are the interrupts of running subagents and branches. suspended are those of
	// children that have ended so that the run can end with them.
	concurrent []*runs.Interrupts
	suspended  []*runs.Interrupts
	// afterEnd are the interrupts that the thread waits for after the end of its AG-UI run; nil =
	// none.
	afterEnd *runs.Interrupts
}

// hold makes w the interrupts of the current turn. Earlier ones are kept while they have pending
// notifications.
func (i *interrupts) hold(w *runs.Interrupts) { i.held, i.answered, i.earlier = w, nil, i.notifiable() }

// unhold drops the interrupts of the turn without decisions, because the turn has failed.
func (i *interrupts) unhold() {
	if i.held != nil {
		i.withdraw(i.held)
		i.held = nil
	}
}

// find returns the interrupts that a decision about a call is for: those of a child first, then
// those that are open, those resolved last, and those that the run resumes (began); nil = none. The
// result need not have the call. A cancelled run takes no decisions about open interrupts of its
// turn and its children.
func (i *interrupts) find(callID string, began *runs.Interrupts, cancelled bool) *runs.Interrupts {
	for _, w := range slices.Backward(i.concurrent) {
		if w.Find(callID) != nil && !cancelled {
			return w
		}
	}
	switch {
	case i.held != nil && cancelled:
		return nil
	case i.held != nil:
		return i.held
	case i.afterEnd != nil:
		return i.afterEnd
	case i.answered != nil:
		return i.answered
	}
	return began
}

// open returns the IDs of calls that the active run and its children wait for, without those that
// the decisions resolve.
func (i *interrupts) open(decisions []runs.Decision) []string {
	var ids []string
	for _, w := range slices.Concat(i.concurrent, i.suspended, []*runs.Interrupts{i.held}) {
		if w != nil {
			more, _ := w.Open(decisions...)
			ids = append(ids, more...)
		}
	}
	return ids
}

// withdraw stops the wait for interrupts of children. It keeps them while notifications about them
// are pending.
func (i *interrupts) withdraw(all ...*runs.Interrupts) {
	i.concurrent = slices.DeleteFunc(i.concurrent, func(w *runs.Interrupts) bool { return slices.Contains(all, w) })
	all = slices.DeleteFunc(slices.Clone(all), func(w *runs.Interrupts) bool { return slices.Contains(i.earlier, w) })
	i.earlier = slices.DeleteFunc(append(i.earlier, all...), (*runs.Interrupts).IsNotified)
}

// cancel cancels interrupts and withdraws them: no decision can take effect, and approvers are
// notified of that.
func (i *interrupts) cancel(now time.Time, all ...*runs.Interrupts) {
	for _, w := range all {
		w.CancelAnnounced(now)
	}
	i.withdraw(all...)
}

// notifiable returns the resolved interrupts with pending notifications.
func (i *interrupts) notifiable() []*runs.Interrupts {
	return slices.DeleteFunc(append(slices.Clone(i.earlier), i.answered), (*runs.Interrupts).IsNotified)
}

// nextPending returns the first interrupts with pending notifications: those that the run resumes
// (began) come first, then resolved ones, then open ones. It skips those in except; nil = there are
// none.
func (i *interrupts) nextPending(began *runs.Interrupts, except map[*runs.Interrupts]bool) *runs.Interrupts {
	for _, w := range slices.Concat([]*runs.Interrupts{began}, i.notifiable(), i.concurrent, []*runs.Interrupts{i.held, i.afterEnd}) {
		if w.HasPending() && !except[w] {
			return w
		}
	}
	return nil
}
