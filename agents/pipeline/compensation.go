package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// Compensation undoes finished steps in reverse order when the tree fails or is cancelled. The
// cursor lists them in Undo, and Undoing is set while they are undone. The root list of the tree is
// then the compensation of the last step in Undo (undoRoot). When it ends or fails, that step is
// removed, and the next one is undone.

// recordBytes is about how many bytes an entry of Cursor.Records takes, without its path.
const recordBytes = 20

// maxNotes bounds the failure's message, in bytes: when it is longer, failed compensations are not
// added.
const maxNotes = 500

// cancelled is the code of a failure by a cancel. Such a failure is not retried.
const cancelled = "cancelled"

// laterFailed is the message of the failure for which the branches of a finished step are
// compensated.
const laterFailed = "a later step failed"

// endTree ends the tree when its last step has ended, or continues with the next compensation.
func (w *interpreter) endTree() {
	if w.at.Undoing == nil {
		w.clear()
		w.action = &Action{}
		return
	}
	w.continueUndo()
}

// failTree fails the tree with a failure that no step handles, and begins compensation. If a
// compensation has failed, it adds that to the failure's message, and continues with the next one.
func (w *interpreter) failTree() {
	if w.at.Undoing == nil {
		w.at.Undoing = new(w.failure)
		w.compensateLast()
		return
	}
	if u := w.at.Undoing; len(u.Message) < maxNotes {
		u.Message += "; could not compensate for " + nameOf(w.at.Undo[len(w.at.Undo)-1])
	}
	w.continueUndo()
}

// undoBytes returns how many bytes the cursor takes for compensations, without JSON.
func (w *interpreter) undoBytes() int {
	n := 0
	for _, path := range w.at.Undo {
		n += len(path)
	}
	for path := range w.at.Records {
		n += len(path) + recordBytes
	}
	return n
}

// continueUndo removes the step that was compensated last, and compensates the one that finished
// before it.
func (w *interpreter) continueUndo() {
	last := len(w.at.Undo) - 1
	delete(w.at.Records, w.at.Undo[last])
	delete(w.noted, w.at.Undo[last])
	w.at.Undo, w.seen = w.at.Undo[:last], nil
	w.compensateLast()
}

// compensateLast begins the compensation of the last finished step. If none is left, it ends the
// tree with the failure. A branch that compensates another one fails only if a compensation has
// failed.
func (w *interpreter) compensateLast() {
	if len(w.at.Undo) > 0 {
		w.push(Frame{})
		return
	}
	w.clear()
	w.action = &Action{}
	if !w.at.isUndo() || w.at.Undoing.Message != laterFailed {
		w.action.Failed = w.at.Undoing
	}
}

// onCancel closes the open steps, and compensates the finished ones. During compensation the step
// that is being compensated counts as failed, and the next compensation begins: the workflow sends
// a cancel for each of them when the time for compensation has passed.
func (w *interpreter) onCancel(places []openStep, ev Event) {
	if ev.Failure != nil {
		w.failTop(*ev.Failure)
	} else {
		w.failTop(failf(cancelled, "the run was cancelled"))
	}
	if n := len(places); n > 0 {
		top := places[n-1]
		// Clients have seen the end of a step that waits for its next try.
		if top.frame.Waiting {
			w.then = entering
		}
		w.noteFailedBranches(top, ev.Branches)
		w.noteEnded(top)
	}
	w.closeSteps(places, 0)
	w.at.Frames = nil
	// No step is open: compensation has ended, or continues with the next finished step.
	if len(places) == 0 && w.at.Undoing != nil {
		w.compensateLast()
		return
	}
	w.failTree()
}

// compensatesBranches reports whether p stands for the compensations of its branches, instead of
// running them: it is the root of an undo, and has branches.
func (w *interpreter) compensatesBranches(p openStep) bool {
	return w.at.Undoing != nil && len(w.at.Frames) == 1 && (p.step.Parallel != nil || p.step.Map != nil)
}

// noteDone adds a finished step to Undo. A step that may run again also needs its present outputs,
// and a step with branches their items and records; these are in a Done, which the caller stores
// with the move.
func (w *interpreter) noteDone(p openStep) {
	var d Done
	if around := w.repeated(p.path); around != nil {
		d.Outputs = w.outputsOf(around)
	}
	// Without a compensation of its own, the step stands for those of its branches.
	if p.step.Compensate == nil {
		if d.Items, d.Ends = w.ended.Items, w.ended.Ends; !slices.ContainsFunc(d.Ends, func(seq uint64) bool { return seq > 0 }) {
			return // no branch has anything to compensate
		}
	}
	w.at.Undo = append(w.at.Undo, p.path)
	if d.Outputs == nil && d.Ends == nil {
		return
	}
	if w.at.Records == nil {
		w.at.Records = map[string]uint64{}
	}
	if w.noted == nil {
		w.noted = map[string]Done{}
	}
	// The record is 0 until the caller has stored the move.
	w.at.Records[p.path], w.noted[p.path] = 0, d
}

// compensatedDone returns the Done of the step that is being compensated. It calls env.Recall at
// most once for each step; an error ends Advance.
func (w *interpreter) compensatedDone() Done {
	path := w.at.Undo[len(w.at.Undo)-1]
	if d, here := w.noted[path]; here {
		return d
	}
	record, there := w.at.Records[path]
	if !there {
		return Done{}
	}
	d, err := w.env.Recall(path, record)
	if err != nil {
		w.err = err
		return Done{}
	}
	if w.noted == nil {
		w.noted = map[string]Done{}
	}
	w.noted[path] = d
	return d
}

// restoreOutputs sets the outputs of steps that may have run again to their values when the
// compensated step had finished. outputs are the variables of its expressions; the state does not
// change.
func (w *interpreter) restoreOutputs(outputs map[string]any) {
	path := w.at.Undo[len(w.at.Undo)-1]
	around := w.repeated(path)
	if around == nil {
		return
	}
	then := w.compensatedDone().Outputs
	around.Each(func(s *agents.Step) {
		// An output that came later is removed: the compensated step has not seen it.
		if output, there := then[s.Name]; there {
			outputs[s.Name] = expression.Decode(output)
		} else {
			delete(outputs, s.Name)
		}
	})
}

// outputsOf returns the current outputs of all steps in a step, by name.
func (w *interpreter) outputsOf(around *agents.Step) map[string]json.RawMessage {
	outputs, visible := map[string]json.RawMessage{}, w.visible(expression.Decode(w.env.State))
	around.Each(func(s *agents.Step) {
		if value, there := visible[s.Name]; there && s.Name != "" {
			outputs[s.Name], _ = expression.Encode(value)
		}
	})
	return outputs
}

// repeated returns the outermost step around a path that may run its steps again, or whose error
// may have replaced their outputs; nil = none. For steps in it the state may not have the outputs
// of the compensated run.
func (w *interpreter) repeated(path string) *agents.Step {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if s := w.repeats(path[:i], false); s != nil {
			return s
		}
	}
	return w.repeats(path, true)
}

// repeats returns the step at the end of a path, if it may run again when a step in it has
// finished, or is a map with onError: continue, whose error replaces its outputs; nil otherwise.
// last means that it is the finished step itself: then only tries of its branches count, because
// finished branches stay finished when it fails.
func (w *interpreter) repeats(path string, last bool) *agents.Step {
	s := StepAt(w.d, path)
	switch {
	case s == nil:
		return nil
	case (s.Loop != nil || s.Map != nil && s.OnError.Continue) && !last, s.Retry != nil && (!last || s.Parallel != nil || s.Map != nil):
		return s
	}
	return nil
}

// collect begins a branch that compensates another one: it takes over the finished steps of that
// branch (env.Ended).
func (w *interpreter) collect() {
	w.at.Undoing = new(failf("not_compensated", laterFailed))
	w.at.Undo, w.at.Records = slices.Clone(w.env.Ended.Undo), maps.Clone(w.env.Ended.Records)
	w.compensateLast()
}

// at returns the member or entry of a container; nil = there is none. token is a string for
// objects, and an int for lists.
func at(container, token any) any {
	if index, ok := token.(int); ok {
		if list, _ := container.([]any); index < len(list) {
			return list[index]
		}
		return nil
	}
	object, _ := container.(map[string]any)
	return object[token.(string)]
}
