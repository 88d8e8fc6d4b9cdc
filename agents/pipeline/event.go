package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// takeEvent applies the event to the innermost open step, which sets its first transition or the
// action. An event that does not fit the step is an ErrCursor.
func (w *interpreter) takeEvent(ev Event) error {
	if ev.Kind == EventBegun {
		return w.startTree()
	}
	places, err := w.openSteps()
	if err != nil {
		return err
	}
	// noteDone reads the items and records of branches from the event.
	w.ended = ev
	if ev.Kind == EventCancelled {
		w.onCancel(places, ev)
		return nil
	}
	if len(places) == 0 {
		return fmt.Errorf("%w: %q without an open step", ErrCursor, ev.Kind)
	}
	p := places[len(places)-1]
	s := p.step
	leaf := s.Agent != nil || s.Tool != "" || s.Approve != nil
	forked := s.Parallel != nil || s.Map != nil
	switch {
	case ev.Kind == EventWoken && p.frame.Waiting:
		w.top().Waiting = false
		w.then = entering
	case p.frame.Waiting:
		return fmt.Errorf("%w: %q while %q waits", ErrCursor, ev.Kind, p.path)
	case ev.Kind == EventDone && leaf:
		w.takeOutput(p, ev.Output)
	case ev.Kind == EventJoined && forked:
		w.takeJoin(p, ev.Branches)
	case ev.Kind == EventFailed && (leaf || forked):
		w.takeFailure(p, ev)
	default:
		return fmt.Errorf("%w: %q at %q", ErrCursor, ev.Kind, p.path)
	}
	return nil
}

// startTree begins the tree, or the cursor's branch. The tree removes the outputs of the run before
// from the state, unless the cursor keeps them. A branch does not, since its siblings write there,
// too.
func (w *interpreter) startTree() error {
	if len(w.at.Frames) > 0 || len(w.at.Undo) > 0 {
		return fmt.Errorf("%w: the tree has begun", ErrCursor)
	}
	in, err := w.root()
	if err != nil {
		return err
	}
	if len(w.at.Branch) == 0 {
		w.reset()
	}
	switch {
	case w.at.isUndo():
		w.collect()
	case len(in.steps) == 0: // only in a tree that was not validated
		w.endTree()
	default:
		w.push(Frame{})
	}
	return nil
}

// takeOutput takes the output of a step that has ended. An agent's answer must fit the step's
// schema: an invalid one is sent back as another action of the same step, up to MaxRepairs times. A
// rejected approval fails the step, with the decision as its output.
func (w *interpreter) takeOutput(p openStep, output json.RawMessage) {
	s := p.step
	if s.Output != nil {
		answer, isText := expression.Decode(output).(string)
		if !isText {
			answer = string(output)
		}
		var wrong *agents.AnswerError
		read, err := s.Output.Read(answer)
		switch {
		case errors.As(err, &wrong) && p.frame.Repairs < s.Output.MaxRepairs():
			w.top().Repairs++
			w.runAgent(p, "Your last answer is not valid: "+wrong.Error()+". Answer again, with nothing but JSON that fits the schema.")
			return
		case err != nil:
			f := failf("invalid_output", "step %q: the answer does not fit the schema", p.name)
			if wrong != nil {
				f.Detail, f.Detailed = strings.ToValidUTF8(wrong.Error()[:min(len(wrong.Error()), maxDetail)], ""), true
			}
			w.failTop(f)
			return
		}
		output = read
	}
	if len(output) > agents.MaxOutput {
		w.failTop(failf("output_too_large", "step %q: the output has more than %d bytes", p.name, agents.MaxOutput))
		return
	}
	value := expression.Decode(output)
	if s.Name != "" {
		w.putRaw(s.Name, output)
	}
	if object, _ := value.(map[string]any); s.Approve != nil && object["approved"] != true {
		w.failTop(failf("rejected", "step %q was not approved", p.name))
		return
	}
	w.then = leaving
}

// takeFailure takes the failure of a step. Its branches may have been active: those that had
// finished are noted for compensation.
func (w *interpreter) takeFailure(p openStep, ev Event) {
	w.noteFailedBranches(p, ev.Branches)
	w.noteEnded(p)
	if ev.Failure == nil {
		w.failTop(failf("failed", "step %q failed", p.name))
		return
	}
	w.setFailure(p.name, *ev.Failure)
}

// setFailure fails the innermost step, with a message that names the step. A branch does not name
// itself: the join names the branch that failed, and equal failures of branches share one message.
func (w *interpreter) setFailure(name string, f Failure) {
	switch {
	case len(w.at.Branch) > 0, strings.HasPrefix(f.Message, "step "): // the message names an inner step already
	case f.Message == "":
		f.Message = fmt.Sprintf("step %q failed", name)
	default:
		f.Message = fmt.Sprintf("step %q: %s", name, f.Message)
	}
	w.failTop(f)
}

// takeJoin takes the end of a step's branches. With onError: continue their failures become
// outputs, and the step has ended. Otherwise the step fails with the first failure; one that is no
// cancel comes before those of branches that were cancelled because of it.
func (w *interpreter) takeJoin(p openStep, failed []BranchFailure) {
	// These branches undid finished ones. A failure means that a compensation has failed, not that
	// a step has.
	if w.compensatesBranches(p) {
		w.then = leaving
		if len(failed) > 0 {
			w.failTop(failed[0].Failure)
		}
		return
	}
	w.noteFailedBranches(p, failed)
	w.then = leaving
	goOn := p.step.Parallel != nil && p.step.Parallel.OnError == agents.OnErrorContinue ||
		p.step.Map != nil && p.step.Map.OnError == agents.OnErrorContinue
	if len(failed) == 0 || goOn {
		return
	}
	w.noteEnded(p)
	// Branches that were cancelled because of a failure are not its cause.
	first := failed[0]
	for _, f := range failed {
		if first.Code == cancelled && f.Code != cancelled {
			first = f
		}
	}
	// The message names the step of the branch instead of the parallel step.
	name := p.name
	if s := p.step.Parallel; s != nil && first.Index >= 0 && first.Index < len(s.Steps) {
		name = s.Steps[first.Index].Name
	}
	w.setFailure(name, first.Failure)
}

// noteEnded notes a failed step whose finished branches have to be compensated.
func (w *interpreter) noteEnded(p openStep) {
	if w.at.Undoing == nil && p.step.Compensates() {
		w.noteDone(p)
	}
}

// noteFailedBranches writes the failures of branches to the state, in place of their outputs, as
// {"error": …}.
func (w *interpreter) noteFailedBranches(p openStep, failed []BranchFailure) {
	s := p.step
	if w.at.Undoing != nil {
		return
	}
	for _, f := range failed {
		switch {
		case s.Map != nil && f.Index >= 0 && f.Index < agents.MaxItems:
			w.put(s.Name, errorValue(f.Failure), f.Index, "error")
		case s.Parallel != nil && f.Index >= 0 && f.Index < len(s.Parallel.Steps):
			w.put(s.Parallel.Steps[f.Index].Name, errorValue(f.Failure), "error")
		}
	}
}
