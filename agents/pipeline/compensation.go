package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// recordBytes is about how many bytes a record takes in a cursor, without its path.
const recordBytes = 20

// maxNotes bounds the message about failed compensations, in bytes.
const maxNotes = 500

// cancelled is the code of a failure by a cancel.
const cancelled = "cancelled"

// laterFailed is the failure that branches are compensated for.
const laterFailed = "a later step failed"

// endTree ends the steps, when none is left.
func (w *interpreter) endTree() {
	if w.at.Undoing == nil {
		w.clear()
		w.action = &Action{}
		return
	}
	w.continueUndo()
}

// failTree ends the steps with a failure that no step handles.
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

// undoBytes returns how many bytes the cursor takes for compensations.
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

// continueUndo goes on to the step that finished before.
func (w *interpreter) continueUndo() {
	last := len(w.at.Undo) - 1
	delete(w.at.Records, w.at.Undo[last])
	delete(w.noted, w.at.Undo[last])
	w.at.Undo, w.seen = w.at.Undo[:last], nil
	w.compensateLast()
}

// compensateLast begins the compensation of the last finished step.
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

// onCancel ends the active steps, and compensates the finished ones.
func (w *interpreter) onCancel(places []openStep, ev Event) {
	if ev.Failure != nil {
		w.failTop(*ev.Failure)
	} else {
		w.failTop(failf(cancelled, "the run was cancelled"))
	}
	if n := len(places); n > 0 {
		top := places[n-1]
		if top.frame.Waiting {
			w.then = entering
		}
		w.noteFailedBranches(top, ev.Branches)
		w.noteEnded(top)
	}
	w.closeSteps(places, 0)
	w.at.Frames = nil
	if len(places) == 0 && w.at.Undoing != nil {
		w.compensateLast()
		return
	}
	w.failTree()
}

// compensatesBranches reports whether a step with branches stands for their compensations.
func (w *interpreter) compensatesBranches(p openStep) bool {
	return w.at.Undoing != nil && len(w.at.Frames) == 1 && (p.step.Parallel != nil || p.step.Map != nil)
}

// noteDone notes a finished step for its compensation.
func (w *interpreter) noteDone(p openStep) {
	var d Done
	if around := w.repeated(p.path); around != nil {
		d.Outputs = w.outputsOf(around)
	}
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
	w.at.Records[p.path], w.noted[p.path] = 0, d
}

// compensatedDone returns the Done of the step that is being compensated.
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

// restoreOutputs restores the outputs of steps that may have run again, as they were when the
// compensated step had finished.
func (w *interpreter) restoreOutputs(outputs map[string]any) {
	path := w.at.Undo[len(w.at.Undo)-1]
	around := w.repeated(path)
	if around == nil {
		return
	}
	then := w.compensatedDone().Outputs
	around.Each(func(s *agents.Step) {
		if output, there := then[s.Name]; there {
			outputs[s.Name] = expression.Decode(output)
		} else {
			delete(outputs, s.Name)
		}
	})
}

// outputsOf returns the current outputs of the steps in a step.
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
// may have replaced their outputs; nil = none.
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
// finished, or is a map with onError: continue, whose error replaces its outputs. last tells that
// this is the finished step itself: its finished branches stay finished when it fails.
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

// collect takes over the finished steps of a branch that have to be compensated.
func (w *interpreter) collect() {
	w.at.Undoing = new(failf("not_compensated", laterFailed))
	w.at.Undo, w.at.Records = slices.Clone(w.env.Ended.Undo), maps.Clone(w.env.Ended.Records)
	w.compensateLast()
}

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
