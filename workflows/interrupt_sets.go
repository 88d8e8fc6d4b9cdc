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

// hold makes set the interrupts of the current turn. Earlier ones are kept while they have pending
// notifications.
func (i *interrupts) hold(set *runs.Interrupts) {
	i.held, i.answered, i.earlier = set, nil, i.notifiable()
}

// unhold drops the interrupts of the turn without decisions, because the turn has failed.
func (i *interrupts) unhold() {
	if i.held != nil {
		i.drop(i.held)
		i.held = nil
	}
}

// find returns the interrupts that a decision about a call is for: those of a child first, then
// those that are open, those resolved last, and those that the run resumes (resumed); nil = none.
// The result need not have the call. A cancelled run takes no decisions about open interrupts of
// its turn and its children.
func (i *interrupts) find(callID string, resumed *runs.Interrupts, cancelled bool) *runs.Interrupts {
	for _, set := range slices.Backward(i.concurrent) {
		if set.Find(callID) != nil && !cancelled {
			return set
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
	return resumed
}

// open returns the IDs of calls that the active run and its children wait for, without those that
// the decisions resolve.
func (i *interrupts) open(decisions []runs.Decision) []string {
	var ids []string
	for _, set := range slices.Concat(i.concurrent, i.suspended, []*runs.Interrupts{i.held}) {
		if set != nil {
			more, _ := set.Open(decisions...)
			ids = append(ids, more...)
		}
	}
	return ids
}

// drop stops the wait for interrupts of children. It keeps them while notifications about them
// are pending.
func (i *interrupts) drop(all ...*runs.Interrupts) {
	i.concurrent = slices.DeleteFunc(i.concurrent, func(set *runs.Interrupts) bool { return slices.Contains(all, set) })
	all = slices.DeleteFunc(slices.Clone(all), func(set *runs.Interrupts) bool { return slices.Contains(i.earlier, set) })
	i.earlier = slices.DeleteFunc(append(i.earlier, all...), (*runs.Interrupts).IsNotified)
}

// cancel cancels interrupts and drops them: no decision can take effect, and approvers are
// notified of that.
func (i *interrupts) cancel(now time.Time, all ...*runs.Interrupts) {
	for _, set := range all {
		set.CancelAnnounced(now)
	}
	i.drop(all...)
}

// notifiable returns the resolved interrupts with pending notifications.
func (i *interrupts) notifiable() []*runs.Interrupts {
	return slices.DeleteFunc(append(slices.Clone(i.earlier), i.answered), (*runs.Interrupts).IsNotified)
}

// nextPending returns the first interrupts with pending notifications: those that the run resumes
// (resumed) come first, then resolved ones, then open ones. It skips those in except; nil = there
// are none.
func (i *interrupts) nextPending(resumed *runs.Interrupts, except map[*runs.Interrupts]bool) *runs.Interrupts {
	for _, set := range slices.Concat([]*runs.Interrupts{resumed}, i.notifiable(), i.concurrent, []*runs.Interrupts{i.held, i.afterEnd}) {
		if set.HasPending() && !except[set] {
			return set
		}
	}
	return nil
}
