package trace

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// endWait ends the wait of a pipeline, whose agent has written again.
func (f *Fold) endWait(a *agent, rec *stream.Record) {
	if a.wait.isOpen() {
		f.touch(a.wait, rec)
		f.end(a.wait, rec.Time, StatusFinished)
	}
	a.wait = nil
}

// addAdvance adds the record of an advance: steps that end and begin, and waits.
func (f *Fold) addAdvance(rec *stream.Record, result *doneResult, events [][]byte) error {
	a := f.agentOn(rec.Lane)
	var answer advanceAnswer
	if err := decodeAnswer(rec, result.Answer, &answer); err != nil {
		return err
	}
	undoing := answer.TreePosition.Undoing
	beginsUndoing := undoing != nil && a.compensation == nil
	failed := answer.Failed
	switch {
	case beginsUndoing:
		failed = undoing
	case a.compensation != nil: // the failure is that of an earlier step
		failed = nil
	}
	changes, err := stepChanges(events)
	if err != nil {
		return err
	}
	last := slices.IndexFunc(changes, stepChange.undoes)
	if last < 0 {
		last = len(changes)
	}
	// A step that ends before another one begins has not failed: the failure ends all open steps.
	for last--; last >= 0 && !changes[last].begins; last-- {
	}
	for i, c := range changes {
		switch {
		case !c.begins && i < last:
			f.endStep(a, rec, c.name, nil)
		case !c.begins:
			f.endStep(a, rec, c.name, failed)
		default:
			if beginsUndoing && c.undoes() && len(a.steps) == 0 {
				f.beginCompensation(a, rec, undoing)
				beginsUndoing = false
			}
			step := f.begin(rec, rec.Time, a.container(), KindStep, c.name)
			step.span.StepName = c.name
			a.steps = append(a.steps, step)
		}
	}
	isEnd := len(answer.Active) == 0 && len(answer.Branches) == 0 && answer.Sleep == 0
	if beginsUndoing && !isEnd {
		f.beginCompensation(a, rec, undoing)
	}
	if a.compensation.isOpen() && isEnd {
		f.touch(a.compensation, rec)
		f.end(a.compensation, rec.Time, StatusFinished)
	}
	if answer.Sleep > 0 {
		a.wait = f.begin(rec, rec.Time, a.container(), KindWait, "retry")
	}
	return nil
}

// stepChange is the begin or the end of a step of a pipeline.
type stepChange struct {
	name   string
	begins bool
}

// undoes reports whether a step begins that undoes a finished one.
func (c stepChange) undoes() bool { return c.begins && strings.HasSuffix(c.name, "/compensate") }

// stepChanges returns the steps that begin and end by events, in their order.
func stepChanges(events [][]byte) ([]stepChange, error) {
	var changes []stepChange
	for _, raw := range events {
		switch agui.TypeOf(raw) {
		case agui.EventStepFinished:
			e, err := decodeAs[*agui.StepFinished](raw)
			if err != nil {
				return nil, err
			}
			changes = append(changes, stepChange{e.StepName, false})
		case agui.EventStepStarted:
			e, err := decodeAs[*agui.StepStarted](raw)
			if err != nil {
				return nil, err
			}
			changes = append(changes, stepChange{e.StepName, true})
		}
	}
	return changes, nil
}

// beginCompensation begins the compensation of finished steps, because of a failure.
func (f *Fold) beginCompensation(a *agent, rec *stream.Record, undoing *failure) {
	a.compensation = f.begin(rec, rec.Time, a.node, KindCompensation, "compensation")
	a.compensation.span.Error = undoing.error()
}

// endStep ends the innermost open step with a name. Names of turns' steps are not those of a
// pipeline, and change nothing. failed is the failure of the pipeline, nil = none. A step whose last
// call has failed has failed, too: the pipeline may handle that.
func (f *Fold) endStep(a *agent, rec *stream.Record, name string, failed *failure) {
	for i := len(a.steps) - 1; i >= 0; i-- {
		step := a.steps[i]
		if step.span.Name != name {
			continue
		}
		a.steps = append(a.steps[:i:i], a.steps[i+1:]...)
		f.touch(step, rec)
		last := step.lastChild
		switch {
		case failed != nil && failed.Code == codeCancelled:
			f.end(step, rec.Time, StatusCancelled)
		case last != nil && last.span.Kind != KindBranch && last.span.Kind != KindStep && last.span.Status == StatusFailed:
			f.fail(step, rec.Time, last.span.Error) // has more details than the pipeline's failure
		case failed != nil:
			f.fail(step, rec.Time, failed.error())
		default:
			f.end(step, rec.Time, StatusFinished)
		}
		return
	}
}
