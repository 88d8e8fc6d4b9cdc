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
func (in *interpreter) endTree() {
	if in.at.Undoing == nil {
		in.clear()
		in.action = &Action{}
		return
	}
	in.continueUndo()
}

// failTree fails the tree with a failure that no step handles, and begins compensation. If a
// compensation has failed, it adds that to the failure's message, and continues with the next one.
func (in *interpreter) failTree() {
	if in.at.Undoing == nil {
		in.at.Undoing = new(in.failure)
		in.compensateLast()
		return
	}
	if u := in.at.Undoing; len(u.Message) < maxNotes {
		u.Message += "; could not compensate for " + nameOf(in.at.Undo[len(in.at.Undo)-1])
	}
	in.continueUndo()
}

// undoBytes returns how many bytes the cursor takes for compensations, without JSON.
func (in *interpreter) undoBytes() int {
	n := 0
	for _, path := range in.at.Undo {
		n += len(path)
	}
	for path := range in.at.Records {
		n += len(path) + recordBytes
	}
	return n
}

// continueUndo removes the step that was compensated last, and compensates the one that finished
// before it.
func (in *interpreter) continueUndo() {
	last := len(in.at.Undo) - 1
	delete(in.at.Records, in.at.Undo[last])
	delete(in.noted, in.at.Undo[last])
	in.at.Undo, in.seen = in.at.Undo[:last], nil
	in.compensateLast()
}

// compensateLast begins the compensation of the last finished step. If none is left, it ends the
// tree with the failure. A branch that compensates another one fails only if a compensation has
// failed.
func (in *interpreter) compensateLast() {
	if len(in.at.Undo) > 0 {
		in.push(Frame{})
		return
	}
	in.clear()
	in.action = &Action{}
	if !in.at.isUndo() || in.at.Undoing.Message != laterFailed {
		in.action.Failed = in.at.Undoing
	}
}

// onCancel closes the open steps, and compensates the finished ones. During compensation the step
// that is being compensated counts as failed, and the next compensation begins: the workflow sends
// a cancel for each of them when the time for compensation has passed.
func (in *interpreter) onCancel(places []openStep, ev Event) {
	if ev.Failure != nil {
		in.failTop(*ev.Failure)
	} else {
		in.failTop(failf(cancelled, "the run was cancelled"))
	}
	if n := len(places); n > 0 {
		top := places[n-1]
		// Clients have seen the end of a step that waits for its next try.
		if top.frame.Waiting {
			in.then = entering
		}
		in.noteFailedBranches(top, ev.Branches)
		in.noteEnded(top)
	}
	in.closeSteps(places, 0)
	in.at.Frames = nil
	// No step is open: compensation has ended, or continues with the next finished step.
	if len(places) == 0 && in.at.Undoing != nil {
		in.compensateLast()
		return
	}
	in.failTree()
}

// compensatesBranches reports whether p stands for the compensations of its branches, instead of
// running them: it is the root of an undo, and has branches.
func (in *interpreter) compensatesBranches(p openStep) bool {
	return in.at.Undoing != nil && len(in.at.Frames) == 1 && (p.step.Parallel != nil || p.step.Map != nil)
}

// noteDone adds a finished step to Undo. A step that may run again also needs its present outputs,
// and a step with branches their items and records; these are in a Done, which the caller stores
// with the move.
func (in *interpreter) noteDone(p openStep) {
	var d Done
	if around := in.repeated(p.path); around != nil {
		d.Outputs = in.outputsOf(around)
	}
	// Without a compensation of its own, the step stands for those of its branches.
	if p.step.Compensate == nil {
		if d.Items, d.Ends = in.ended.Items, in.ended.Ends; !slices.ContainsFunc(d.Ends, func(seq uint64) bool { return seq > 0 }) {
			return // no branch has anything to compensate
		}
	}
	in.at.Undo = append(in.at.Undo, p.path)
	if d.Outputs == nil && d.Ends == nil {
		return
	}
	if in.at.Records == nil {
		in.at.Records = map[string]uint64{}
	}
	if in.noted == nil {
		in.noted = map[string]Done{}
	}
	// The record is 0 until the caller has stored the move.
	in.at.Records[p.path], in.noted[p.path] = 0, d
}

// compensatedDone returns the Done of the step that is being compensated. It calls env.Recall at
// most once for each step; an error ends Advance.
func (in *interpreter) compensatedDone() Done {
	path := in.at.Undo[len(in.at.Undo)-1]
	if d, here := in.noted[path]; here {
		return d
	}
	record, there := in.at.Records[path]
	if !there {
		return Done{}
	}
	d, err := in.env.Recall(path, record)
	if err != nil {
		in.err = err
		return Done{}
	}
	if in.noted == nil {
		in.noted = map[string]Done{}
	}
	in.noted[path] = d
	return d
}

// restoreOutputs sets the outputs of steps that may have run again to their values when the
// compensated step had finished. outputs are the variables of its expressions; the state does not
// change.
func (in *interpreter) restoreOutputs(outputs map[string]any) {
	path := in.at.Undo[len(in.at.Undo)-1]
	around := in.repeated(path)
	if around == nil {
		return
	}
	then := in.compensatedDone().Outputs
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
func (in *interpreter) outputsOf(around *agents.Step) map[string]json.RawMessage {
	outputs, visible := map[string]json.RawMessage{}, in.visible(expression.Decode(in.env.State))
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
func (in *interpreter) repeated(path string) *agents.Step {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if s := in.repeats(path[:i], false); s != nil {
			return s
		}
	}
	return in.repeats(path, true)
}

// repeats returns the step at the end of a path, if it may run again when a step in it has
// finished, or is a map with onError: continue, whose error replaces its outputs; nil otherwise.
// last means that it is the finished step itself: then only tries of its branches count, because
// finished branches stay finished when it fails.
func (in *interpreter) repeats(path string, last bool) *agents.Step {
	s := StepAt(in.d, path)
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
func (in *interpreter) collect() {
	in.at.Undoing = new(failf("not_compensated", laterFailed))
	in.at.Undo, in.at.Records = slices.Clone(in.env.Ended.Undo), maps.Clone(in.env.Ended.Records)
	in.compensateLast()
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
