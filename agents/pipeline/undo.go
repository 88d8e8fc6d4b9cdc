package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// recordBytes is what a cursor's record is besides its path.
const recordBytes = 20

// maxNotes bounds the words about compensations that failed, in bytes.
const maxNotes = 500

// cancelled is the code of what a cancel ends.
const cancelled = "cancelled"

// laterFailed is why branches are compensated for.
const laterFailed = "a later step failed"

// end is reached when no step is left.
func (w *walk) end() {
	if w.at.Undoing == nil {
		w.clear()
		w.action = &Action{}
		return
	}
	w.undone()
}

// abort is reached when a failure has nobody left to deal with it.
func (w *walk) abort() {
	if w.at.Undoing == nil {
		w.at.Undoing = new(w.failure)
		w.undo()
		return
	}
	if u := w.at.Undoing; len(u.Message) < maxNotes {
		u.Message += "; could not compensate for " + nameOf(w.at.Undo[len(w.at.Undo)-1])
	}
	w.undone()
}

// undoBytes is how much the cursor knows of what may have to be compensated for.
func (w *walk) undoBytes() int {
	n := 0
	for _, path := range w.at.Undo {
		n += len(path)
	}
	for path := range w.at.Records {
		n += len(path) + recordBytes
	}
	return n
}

// undone goes on to the step that finished before.
func (w *walk) undone() {
	last := len(w.at.Undo) - 1
	delete(w.at.Records, w.at.Undo[last])
	delete(w.noted, w.at.Undo[last])
	w.at.Undo, w.seen = w.at.Undo[:last], nil
	w.undo()
}

// undo compensates for the last of the finished steps.
func (w *walk) undo() {
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

// cancel ends what is under way, and compensates for what is done.
func (w *walk) cancel(places []place, ev Event) {
	if ev.Failure != nil {
		w.failed(*ev.Failure)
	} else {
		w.failed(failf(cancelled, "the run was cancelled"))
	}
	if n := len(places); n > 0 {
		top := places[n-1]
		if top.frame.Waiting {
			w.then = entering
		}
		w.settle(top, ev.Branches)
		w.remember(top)
	}
	w.close(places, 0)
	w.at.Frames = nil
	if len(places) == 0 && w.at.Undoing != nil {
		w.undo()
		return
	}
	w.abort()
}

// undoesBranches tells whether a step with branches stands here for what compensates for those.
func (w *walk) undoesBranches(p place) bool {
	return w.at.Undoing != nil && len(w.at.Frames) == 1 && (p.step.Parallel != nil || p.step.Map != nil)
}

// note remembers what a step has done.
func (w *walk) note(p place) {
	var d Done
	if around := w.repeated(p.path); around != nil {
		d.Outputs = w.outputsOf(around)
	}
	if p.step.Compensate == nil {
		if d.Items, d.Ends = w.ended.Items, w.ended.Ends; !slices.ContainsFunc(d.Ends, func(seq uint64) bool { return seq > 0 }) {
			return // no branch has done anything
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

// recalled is what was noted of the step that is compensated for.
func (w *walk) recalled() Done {
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

// asWhenDone makes outputs of steps that may have run again what they were when the one had finished that is compensated
// for.
func (w *walk) asWhenDone(outputs map[string]any) {
	path := w.at.Undo[len(w.at.Undo)-1]
	around := w.repeated(path)
	if around == nil {
		return
	}
	then := w.recalled().Outputs
	around.Each(func(s *agents.Step) {
		if output, there := then[s.Name]; there {
			outputs[s.Name] = expression.Decode(output)
		} else {
			delete(outputs, s.Name)
		}
	})
}

// outputsOf are the outputs, at this moment, of what stands in a step.
func (w *walk) outputsOf(around *agents.Step) map[string]json.RawMessage {
	outputs, visible := map[string]json.RawMessage{}, w.visible(expression.Decode(w.env.State))
	around.Each(func(s *agents.Step) {
		if value, there := visible[s.Name]; there && s.Name != "" {
			outputs[s.Name], _ = expression.Encode(value)
		}
	})
	return outputs
}

// repeated is the outermost step around the one at a path that may run it again although it has finished, or has an error
// in place of its outputs by then; nil = there is none.
func (w *walk) repeated(path string) *agents.Step {
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

// repeats is the step at the end of a path, if it may run again when a step in it has finished, or is a map that is lived
// with when it fails: its error takes the place of the list. last tells that this is the step itself, which has finished:
// branches that were done stay done when it fails.
func (w *walk) repeats(path string, last bool) *agents.Step {
	s := StepAt(w.d, path)
	switch {
	case s == nil:
		return nil
	case (s.Loop != nil || s.Map != nil && s.OnError.Continue) && !last, s.Retry != nil && (!last || s.Parallel != nil || s.Map != nil):
		return s
	}
	return nil
}

// gather takes up what a branch has done that is to be compensated for.
func (w *walk) gather() {
	w.at.Undoing = new(failf("not_compensated", laterFailed))
	w.at.Undo, w.at.Records = slices.Clone(w.env.Ended.Undo), maps.Clone(w.env.Ended.Records)
	w.undo()
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
