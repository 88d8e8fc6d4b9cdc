package workflows

import (
	"slices"
	"time"

	"github.com/perdure/perdure/runs"
)

// interrupts are all that an execution knows of: those that are open, and those that are resolved
// while people are still to be notified of it. Only workflow coroutines touch it.
type interrupts struct {
	held     *runs.Interrupts   // of the current turn, whose run stays open
	answered *runs.Interrupts   // those that were held last
	earlier  []*runs.Interrupts // held or asked before those
	// concurrent are those of subagents and branches whose siblings continue, suspended those of
	// children that have ended so that the run can end with them.
	concurrent []*runs.Interrupts
	suspended  []*runs.Interrupts
	// afterEnd are those that the thread waits for after the end of its AG-UI run.
	afterEnd *runs.Interrupts
}

// hold makes w the interrupts of the current turn.
func (i *interrupts) hold(w *runs.Interrupts) { i.held, i.answered, i.earlier = w, nil, i.notifiable() }

// unhold ends the wait for the interrupts of the turn without an answer.
func (i *interrupts) unhold() {
	if i.held != nil {
		i.withdraw(i.held)
		i.held = nil
	}
}

// find returns the interrupts that a decision about a call is for: those of a child first, then
// those that are open, those resolved last, and those that the run began with. A run that is
// cancelled takes no decisions about its own turn.
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

// open returns the calls that the active run and its children wait for, without those that
// decisions are about.
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

// withdraw ends the wait for interrupts of children. People are still notified of what happened to
// them.
func (i *interrupts) withdraw(all ...*runs.Interrupts) {
	i.concurrent = slices.DeleteFunc(i.concurrent, func(w *runs.Interrupts) bool { return slices.Contains(all, w) })
	all = slices.DeleteFunc(slices.Clone(all), func(w *runs.Interrupts) bool { return slices.Contains(i.earlier, w) })
	i.earlier = slices.DeleteFunc(append(i.earlier, all...), (*runs.Interrupts).IsNotified)
}

// cancel is withdraw for interrupts that nobody can decide any more: people are notified of that.
func (i *interrupts) cancel(now time.Time, all ...*runs.Interrupts) {
	for _, w := range all {
		w.CancelAnnounced(now)
	}
	i.withdraw(all...)
}

// notifiable are resolved interrupts of which people are still to be notified.
func (i *interrupts) notifiable() []*runs.Interrupts {
	return slices.DeleteFunc(append(slices.Clone(i.earlier), i.answered), (*runs.Interrupts).IsNotified)
}

// untold returns the first interrupts of which people are to be notified, those that the run began
// with before all others.
func (i *interrupts) untold(began *runs.Interrupts, except map[*runs.Interrupts]bool) *runs.Interrupts {
	for _, w := range slices.Concat([]*runs.Interrupts{began}, i.notifiable(), i.concurrent, []*runs.Interrupts{i.held, i.afterEnd}) {
		if w.HasPending() && !except[w] {
			return w
		}
	}
	return nil
}
