package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// applyEvent applies the event to the innermost open step, which sets its first transition or the
// action. An event that does not fit the step is an ErrPosition.
func (in *interpreter) applyEvent(event Event) error {
	if event.Kind == EventBegun {
		return in.startTree()
	}
	open, err := in.openSteps()
	if err != nil {
		return err
	}
	// recordDone reads the items and records of branches from the event.
	in.event = event
	if event.Kind == EventCancelled {
		in.onCancel(open, event)
		return nil
	}
	if len(open) == 0 {
		return fmt.Errorf("%w: %q without an open step", ErrPosition, event.Kind)
	}
	p := open[len(open)-1]
	s := p.step
	hasAction := s.Agent != nil || s.Tool != "" || s.Approve != nil
	hasBranches := s.Parallel != nil || s.Map != nil
	switch {
	case event.Kind == EventWoken && p.frame.Waiting:
		in.top().Waiting = false
		in.transition = entering
	case p.frame.Waiting:
		return fmt.Errorf("%w: %q while %q waits", ErrPosition, event.Kind, p.path)
	case event.Kind == EventDone && hasAction:
		in.applyOutput(p, event.Output)
	case event.Kind == EventJoined && hasBranches:
		in.applyJoin(p, event.Branches)
	case event.Kind == EventFailed && (hasAction || hasBranches):
		in.applyFailure(p, event)
	default:
		return fmt.Errorf("%w: %q at %q", ErrPosition, event.Kind, p.path)
	}
	return nil
}

// startTree begins the tree after the step After, or the position's branch. The tree removes the
// outputs of the run before from the state, unless the position keeps them. A branch does not,
// since its siblings write there, too.
func (in *interpreter) startTree() error {
	if len(in.position.Frames) > 0 || len(in.position.Undo) > 0 {
		return fmt.Errorf("%w: the tree has begun", ErrPosition)
	}
	list, err := in.root()
	if err != nil {
		return err
	}
	if len(in.position.Branch) == 0 {
		in.resetOutputs()
	}
	after := in.position.After
	in.position.After = ""
	switch {
	case in.position.compensatesBranch():
		in.beginBranchCompensation()
	case after != "":
		return in.beginAfter(after)
	case len(list.steps) == 0: // a tree that was not validated
		in.finishPipeline()
	default:
		in.push(Frame{})
	}
	return nil
}

// applyOutput takes the output of a step that has ended. An agent's answer must fit the step's
// schema: an invalid one is sent back as another action of the same step, up to MaxRepairs times. A
// rejected approval fails the step, with the decision as its output.
func (in *interpreter) applyOutput(p openStep, output json.RawMessage) {
	s := p.step
	if s.Output != nil {
		answer, isText := expression.Decode(output).(string)
		if !isText {
			answer = string(output)
		}
		var answerErr *agents.AnswerError
		validated, err := s.Output.Read(answer)
		switch {
		case errors.As(err, &answerErr) && p.frame.Repairs < s.Output.MaxRepairs():
			in.top().Repairs++
			in.startAgent(p, answerErr.Repair())
			return
		case err != nil:
			f := newFailure("invalid_output", "step %q: the answer does not fit the schema", p.name)
			if answerErr != nil {
				f.Detail, f.Detailed = answerErr.Detail(), true
			}
			in.failInnermost(f)
			return
		}
		output = validated
	}
	if len(output) > agents.MaxOutput {
		in.failInnermost(newFailure("output_too_large", "step %q: the output has more than %d bytes", p.name, agents.MaxOutput))
		return
	}
	value := expression.Decode(output)
	if s.Name != "" {
		in.putRaw(s.Name, output)
	}
	if object, _ := value.(map[string]any); s.Approve != nil && object["approved"] != true {
		in.failInnermost(newFailure("rejected", "step %q was not approved", p.name))
		return
	}
	in.transition = leaving
}

// applyFailure takes the failure of a step. Its branches may have been active: those that had
// finished are recorded for compensation.
func (in *interpreter) applyFailure(p openStep, event Event) {
	in.putBranchErrors(p, event.Branches)
	in.recordEnded(p)
	if event.Failure == nil {
		in.failInnermost(newFailure("failed", "step %q failed", p.name))
		return
	}
	in.setFailure(p.name, *event.Failure)
}

// setFailure fails the innermost step, with a message that names the step. A branch does not name
// itself: the join names the branch that failed, and equal failures of branches share one message.
func (in *interpreter) setFailure(name string, f Failure) {
	switch {
	case len(in.position.Branch) > 0, strings.HasPrefix(f.Message, "step "): // the message names an inner step already
	case f.Message == "":
		f.Message = fmt.Sprintf("step %q failed", name)
	default:
		f.Message = fmt.Sprintf("step %q: %s", name, f.Message)
	}
	in.failInnermost(f)
}

// applyJoin takes the end of a step's branches. With onError: continue their failures become
// outputs, and the step has ended. Otherwise the step fails with the first failure; one that is no
// cancel comes before those of branches that were cancelled because of it.
func (in *interpreter) applyJoin(p openStep, failed []BranchFailure) {
	// These branches undid finished ones. A failure means that a compensation has failed, not that
	// a step has.
	if in.compensatesBranches(p) {
		in.transition = leaving
		if len(failed) > 0 {
			in.failInnermost(failed[0].Failure)
		}
		return
	}
	in.putBranchErrors(p, failed)
	in.transition = leaving
	continues := p.step.Parallel != nil && p.step.Parallel.OnError == agents.OnErrorContinue ||
		p.step.Map != nil && p.step.Map.OnError == agents.OnErrorContinue
	if len(failed) == 0 || continues {
		return
	}
	in.recordEnded(p)
	// Branches that were cancelled because of a failure are not its cause.
	first := failed[0]
	for _, f := range failed {
		if first.Code == codeCancelled && f.Code != codeCancelled {
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

// recordEnded notes a failed step whose finished branches have to be compensated.
func (in *interpreter) recordEnded(p openStep) {
	if in.position.Undoing == nil && p.step.Compensates() {
		in.recordDone(p)
	}
}

// putBranchErrors writes the failures of branches to the state, in place of their outputs, as
// {"error": …}.
func (in *interpreter) putBranchErrors(p openStep, failed []BranchFailure) {
	s := p.step
	if in.position.Undoing != nil {
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
