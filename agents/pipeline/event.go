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
func (in *interpreter) takeEvent(ev Event) error {
	if ev.Kind == EventBegun {
		return in.startTree()
	}
	places, err := in.openSteps()
	if err != nil {
		return err
	}
	// noteDone reads the items and records of branches from the event.
	in.ended = ev
	if ev.Kind == EventCancelled {
		in.onCancel(places, ev)
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
		in.top().Waiting = false
		in.then = entering
	case p.frame.Waiting:
		return fmt.Errorf("%w: %q while %q waits", ErrCursor, ev.Kind, p.path)
	case ev.Kind == EventDone && leaf:
		in.takeOutput(p, ev.Output)
	case ev.Kind == EventJoined && forked:
		in.takeJoin(p, ev.Branches)
	case ev.Kind == EventFailed && (leaf || forked):
		in.takeFailure(p, ev)
	default:
		return fmt.Errorf("%w: %q at %q", ErrCursor, ev.Kind, p.path)
	}
	return nil
}

// startTree begins the tree, or the cursor's branch. The tree removes the outputs of the run before
// from the state, unless the cursor keeps them. A branch does not, since its siblings write there,
// too.
func (in *interpreter) startTree() error {
	if len(in.at.Frames) > 0 || len(in.at.Undo) > 0 {
		return fmt.Errorf("%w: the tree has begun", ErrCursor)
	}
	list, err := in.root()
	if err != nil {
		return err
	}
	if len(in.at.Branch) == 0 {
		in.reset()
	}
	switch {
	case in.at.isUndo():
		in.collect()
	case len(list.steps) == 0: // only in a tree that was not validated
		in.endTree()
	default:
		in.push(Frame{})
	}
	return nil
}

// takeOutput takes the output of a step that has ended. An agent's answer must fit the step's
// schema: an invalid one is sent back as another action of the same step, up to MaxRepairs times. A
// rejected approval fails the step, with the decision as its output.
func (in *interpreter) takeOutput(p openStep, output json.RawMessage) {
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
			in.top().Repairs++
			in.runAgent(p, "Your last answer is not valid: "+wrong.Error()+". Answer again, with nothing but JSON that fits the schema.")
			return
		case err != nil:
			f := failf("invalid_output", "step %q: the answer does not fit the schema", p.name)
			if wrong != nil {
				f.Detail, f.Detailed = strings.ToValidUTF8(wrong.Error()[:min(len(wrong.Error()), maxDetail)], ""), true
			}
			in.failTop(f)
			return
		}
		output = read
	}
	if len(output) > agents.MaxOutput {
		in.failTop(failf("output_too_large", "step %q: the output has more than %d bytes", p.name, agents.MaxOutput))
		return
	}
	value := expression.Decode(output)
	if s.Name != "" {
		in.putRaw(s.Name, output)
	}
	if object, _ := value.(map[string]any); s.Approve != nil && object["approved"] != true {
		in.failTop(failf("rejected", "step %q was not approved", p.name))
		return
	}
	in.then = leaving
}

// takeFailure takes the failure of a step. Its branches may have been active: those that had
// finished are noted for compensation.
func (in *interpreter) takeFailure(p openStep, ev Event) {
	in.noteFailedBranches(p, ev.Branches)
	in.noteEnded(p)
	if ev.Failure == nil {
		in.failTop(failf("failed", "step %q failed", p.name))
		return
	}
	in.setFailure(p.name, *ev.Failure)
}

// setFailure fails the innermost step, with a message that names the step. A branch does not name
// itself: the join names the branch that failed, and equal failures of branches share one message.
func (in *interpreter) setFailure(name string, f Failure) {
	switch {
	case len(in.at.Branch) > 0, strings.HasPrefix(f.Message, "step "): // the message names an inner step already
	case f.Message == "":
		f.Message = fmt.Sprintf("step %q failed", name)
	default:
		f.Message = fmt.Sprintf("step %q: %s", name, f.Message)
	}
	in.failTop(f)
}

// takeJoin takes the end of a step's branches. With onError: continue their failures become
// outputs, and the step has ended. Otherwise the step fails with the first failure; one that is no
// cancel comes before those of branches that were cancelled because of it.
func (in *interpreter) takeJoin(p openStep, failed []BranchFailure) {
	// These branches undid finished ones. A failure means that a compensation has failed, not that
	// a step has.
	if in.compensatesBranches(p) {
		in.then = leaving
		if len(failed) > 0 {
			in.failTop(failed[0].Failure)
		}
		return
	}
	in.noteFailedBranches(p, failed)
	in.then = leaving
	goOn := p.step.Parallel != nil && p.step.Parallel.OnError == agents.OnErrorContinue ||
		p.step.Map != nil && p.step.Map.OnError == agents.OnErrorContinue
	if len(failed) == 0 || goOn {
		return
	}
	in.noteEnded(p)
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
	in.setFailure(name, first.Failure)
}

// noteEnded notes a failed step whose finished branches have to be compensated.
func (in *interpreter) noteEnded(p openStep) {
	if in.at.Undoing == nil && p.step.Compensates() {
		in.noteDone(p)
	}
}

// noteFailedBranches writes the failures of branches to the state, in place of their outputs, as
// {"error": …}.
func (in *interpreter) noteFailedBranches(p openStep, failed []BranchFailure) {
	s := p.step
	if in.at.Undoing != nil {
		return
	}
	for _, f := range failed {
		switch {
		case s.Map != nil && f.Index >= 0 && f.Index < agents.MaxItems:
			in.put(s.Name, errorValue(f.Failure), f.Index, "error")
		case s.Parallel != nil && f.Index >= 0 && f.Index < len(s.Parallel.Steps):
			in.put(s.Parallel.Steps[f.Index].Name, errorValue(f.Failure), "error")
		}
	}
}
