package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// Compensation undoes finished steps in reverse order when the tree fails or is cancelled. The
// position lists them in Undo, and Undoing is set while they are undone. The root list of the tree
// is then the compensation of the last step in Undo (compensationRoot). When it ends or fails, that
// step is removed, and the next one is undone.

// recordBytes is about how many bytes an entry of TreePosition.Records takes, without its path.
const recordBytes = 20

// maxNotedMessage bounds the failure's message, in bytes: no failed compensation is added to a
// message that is at least as long. One addition may exceed the bound.
const maxNotedMessage = 500

// codeCancelled is the code of a failure by a cancel. Such a failure is not retried.
const codeCancelled = "cancelled"

// laterFailure is the message of the failure for which the branches of a finished step are
// compensated.
const laterFailure = "a later step failed"

// finishPipeline ends the tree when its last step has ended, or continues with the next
// compensation. If the agent's result is invalid, the tree fails.
func (in *interpreter) finishPipeline() {
	if in.position.Undoing != nil {
		in.continueCompensation()
		return
	}
	if f := in.evaluateResult(); f != nil {
		in.failure = *f
		in.failPipeline()
		return
	}
	in.removeOutputs()
	in.action = &Action{}
}

// failPipeline fails the tree with a failure that no step handles, and begins compensation. If a
// compensation has failed, it adds that to the failure's message, and continues with the next one.
func (in *interpreter) failPipeline() {
	if in.position.Undoing == nil {
		in.position.Undoing = new(in.failure)
		in.compensateLast()
		return
	}
	if undoing := in.position.Undoing; len(undoing.Message) < maxNotedMessage {
		undoing.Message += "; could not compensate for " + nameOf(in.position.Undo[len(in.position.Undo)-1])
	}
	in.continueCompensation()
}

// compensationSize returns how many bytes the position takes for compensations, without JSON.
func (in *interpreter) compensationSize() int {
	n := 0
	for _, path := range in.position.Undo {
		n += len(path)
	}
	for path := range in.position.Records {
		n += len(path) + recordBytes
	}
	return n
}

// continueCompensation removes the step that was compensated last, and compensates the one that
// finished before it.
func (in *interpreter) continueCompensation() {
	last := len(in.position.Undo) - 1
	delete(in.position.Records, in.position.Undo[last])
	delete(in.done, in.position.Undo[last])
	in.position.Undo, in.variableCache = in.position.Undo[:last], nil
	in.compensateLast()
}

// compensateLast begins the compensation of the last finished step. If none is left, it ends the
// tree with the failure. A branch that compensates another one fails only if a compensation has
// failed.
func (in *interpreter) compensateLast() {
	if len(in.position.Undo) > 0 {
		in.push(Frame{})
		return
	}
	in.removeOutputs()
	in.action = &Action{}
	if !in.position.compensatesBranch() || in.position.Undoing.Message != laterFailure {
		in.action.Failed = in.position.Undoing
	}
}

// onCancel closes the open steps, and compensates the finished ones. During compensation the step
// that is being compensated counts as failed, and the next compensation begins: the workflow sends
// a cancel for each of them when the time for compensation has passed.
func (in *interpreter) onCancel(open []openStep, event Event) {
	if event.Failure != nil {
		in.failInnermost(*event.Failure)
	} else {
		in.failInnermost(newFailure(codeCancelled, "the run was cancelled"))
	}
	if n := len(open); n > 0 {
		top := open[n-1]
		// Clients have seen the end of a step that waits for its next try.
		if top.frame.Waiting {
			in.transition = entering
		}
		in.putBranchErrors(top, event.Branches)
		in.recordEnded(top)
	}
	in.closeSteps(open, 0)
	in.position.Frames = nil
	// No step is open: compensation has ended, or continues with the next finished step.
	if len(open) == 0 && in.position.Undoing != nil {
		in.compensateLast()
		return
	}
	in.failPipeline()
}

// compensatesBranches reports whether p stands for the compensations of its branches, instead of
// running them: it is the root of an undo, and has branches.
func (in *interpreter) compensatesBranches(p openStep) bool {
	return in.position.Undoing != nil && len(in.position.Frames) == 1 && (p.step.Parallel != nil || p.step.Map != nil)
}

// recordDone adds a finished step to Undo. A step that may run again also needs its present
// outputs, and a step with branches their items and records; these are in a Done, which the caller
// stores with the advance.
func (in *interpreter) recordDone(p openStep) {
	var done Done
	if enclosing := in.repeated(p.path); enclosing != nil {
		done.Outputs = in.outputsOf(enclosing)
	}
	// Without a compensation of its own, the step stands for those of its branches.
	if p.step.Compensate == nil {
		if done.Items, done.Ends = in.event.Items, in.event.Ends; !slices.ContainsFunc(done.Ends, func(seq uint64) bool { return seq > 0 }) {
			return // no branch has anything to compensate
		}
	}
	in.position.Undo = append(in.position.Undo, p.path)
	if done.Outputs == nil && done.Ends == nil {
		return
	}
	if in.position.Records == nil {
		in.position.Records = map[string]uint64{}
	}
	if in.done == nil {
		in.done = map[string]Done{}
	}
	// The record is 0 until the caller has stored the advance.
	in.position.Records[p.path], in.done[p.path] = 0, done
}

// compensatedDone returns the Done of the step that is being compensated. It calls env.Recall at
// most once for each step; an error ends Advance.
func (in *interpreter) compensatedDone() Done {
	path := in.position.Undo[len(in.position.Undo)-1]
	if done, ok := in.done[path]; ok {
		return done
	}
	record, ok := in.position.Records[path]
	if !ok {
		return Done{}
	}
	done, err := in.env.Recall(path, record)
	if err != nil {
		in.err = err
		return Done{}
	}
	if in.done == nil {
		in.done = map[string]Done{}
	}
	in.done[path] = done
	return done
}

// restoreOutputs sets the outputs of steps that may have run again to their values when the
// compensated step had finished. outputs are the variables of its expressions; the state does not
// change.
func (in *interpreter) restoreOutputs(outputs map[string]any) {
	path := in.position.Undo[len(in.position.Undo)-1]
	enclosing := in.repeated(path)
	if enclosing == nil {
		return
	}
	outputsAtDone := in.compensatedDone().Outputs
	enclosing.Each(func(s *agents.Step) {
		// An output that came later is removed: the compensated step has not seen it.
		if output, ok := outputsAtDone[s.Name]; ok {
			outputs[s.Name] = expression.Decode(output)
		} else {
			delete(outputs, s.Name)
		}
	})
}

// outputsOf returns the current outputs of all steps in a step, by name.
func (in *interpreter) outputsOf(enclosing *agents.Step) map[string]json.RawMessage {
	outputs, visible := map[string]json.RawMessage{}, in.visibleOutputs(expression.Decode(in.env.State))
	enclosing.Each(func(s *agents.Step) {
		if value, ok := visible[s.Name]; ok && s.Name != "" {
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
		if s := StepAt(in.definition, path[:i]); s != nil && isRerunnable(s) {
			return s
		}
	}
	if s := StepAt(in.definition, path); s != nil && isRerunnableAsFinished(s) {
		return s
	}
	return nil
}

// isRerunnable reports whether a step in which a step has finished may run its steps again, or is a
// map with onError: continue, whose error replaces its outputs.
func isRerunnable(s *agents.Step) bool {
	return s.Loop != nil || s.Map != nil && s.OnError.Continue || s.Retry != nil
}

// isRerunnableAsFinished is isRerunnable for the finished step itself. Only tries of its branches
// count, because finished branches stay finished when it fails.
func isRerunnableAsFinished(s *agents.Step) bool {
	return s.Retry != nil && (s.Parallel != nil || s.Map != nil)
}

// beginBranchCompensation begins a branch that compensates another one: it takes over the finished
// steps of that branch (env.Ended).
func (in *interpreter) beginBranchCompensation() {
	in.position.Undoing = new(newFailure("not_compensated", laterFailure))
	in.position.Undo, in.position.Records = slices.Clone(in.env.Ended.Undo), maps.Clone(in.env.Ended.Records)
	in.compensateLast()
}
