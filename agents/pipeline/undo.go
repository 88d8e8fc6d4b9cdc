package pipeline

import (
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

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
	return n
}

// undone goes on to the step that finished before.
func (w *walk) undone() {
	w.at.Undo = w.at.Undo[:len(w.at.Undo)-1]
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

// itemsDone are the items of the branches that there have been. Where the list has become another one
// since, nobody knows them any more.
func (w *walk) itemsDone(step string, items []any) []any {
	done, _ := w.visible(expression.Decode(w.env.State))[step].([]any)
	if len(done) == len(items) {
		return items
	}
	return make([]any, len(done))
}

// gather finds the steps of a branch that are to be compensated for. Which have run shows in their outputs, and
// a branch that has failed has done so itself.
func (w *walk) gather(in list) {
	w.at.Undoing = new(failf("not_compensated", laterFailed))
	outputs, _ := below(expression.Decode(w.env.State), w.outputs()).(map[string]any)
	if !w.hasFailed(in, outputs) {
		w.at.Undo = finished(in, outputs)
	}
	w.undo()
}

// hasFailed tells whether a branch has failed, as far as outputs show: of a map it stands beside those of the item,
// of parallel where the output of the branch's own step would be. There a step may stand too that goes on when it
// fails: such a branch ends by a cancel only.
func (w *walk) hasFailed(in list, outputs map[string]any) bool {
	if s := StepAt(w.d, w.at.Branch[len(w.at.Branch)-1].Path); s.Map != nil {
		return outputs["error"] != nil
	}
	branch := in.steps[0]
	output, _ := outputs[branch.Name].(map[string]any)
	failure, failed := output["error"].(map[string]any)
	return failed && (!branch.OnError.Continue || failure["code"] == cancelled)
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

// finished are the paths of the steps that have run, in their order.
func finished(in list, outputs map[string]any) []string {
	var paths []string
	for i := range in.steps {
		s, path := &in.steps[i], under(in.path, in.steps[i].Name)
		switch {
		case s.Compensate != nil || s.Compensates():
			if ran(s, outputs) {
				paths = append(paths, path)
			}
		default:
			for _, inner := range s.Inner() {
				paths = append(paths, finished(list{steps: inner, path: path}, outputs)...)
			}
		}
	}
	return paths
}

// ran tells whether a step has come to its end, as far as outputs show.
func ran(s *agents.Step, outputs map[string]any) bool {
	output, there := outputs[s.Name]
	object, _ := output.(map[string]any)
	if _, failed := object["error"]; there && !failed {
		return true
	}
	for _, inner := range s.Inner() {
		for i := range inner {
			if ran(&inner[i], outputs) {
				return true
			}
		}
	}
	return false
}
