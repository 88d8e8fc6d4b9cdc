package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// take takes in what has happened.
func (w *walk) take(ev Event) error {
	if ev.Kind == EventBegun {
		return w.start()
	}
	places, err := w.places()
	if err != nil {
		return err
	}
	w.ended = ev
	if ev.Kind == EventCancelled {
		w.cancel(places, ev)
		return nil
	}
	if len(places) == 0 {
		return fmt.Errorf("%w: %q, and nothing is under way", ErrCursor, ev.Kind)
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
		return fmt.Errorf("%w: %q, and %q waits", ErrCursor, ev.Kind, p.path)
	case ev.Kind == EventDone && leaf:
		w.done(p, ev.Output)
	case ev.Kind == EventJoined && forked:
		w.joined(p, ev.Branches)
	case ev.Kind == EventFailed && (leaf || forked):
		w.lost(p, ev)
	default:
		return fmt.Errorf("%w: %q at %q", ErrCursor, ev.Kind, p.path)
	}
	return nil
}

// start begins the tree, or a branch. What a run before has left goes.
func (w *walk) start() error {
	if len(w.at.Frames) > 0 || len(w.at.Undo) > 0 {
		return fmt.Errorf("%w: it has begun", ErrCursor)
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
		w.gather()
	case len(in.steps) == 0: // only of a tree that nobody has checked
		w.end()
	default:
		w.push(Frame{})
	}
	return nil
}

// done takes the output of a step.
func (w *walk) done(p place, output json.RawMessage) {
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
			w.runAgent(p, "Your last answer is not what it has to be: "+wrong.Error()+". Answer again, with nothing but JSON that fits the schema.")
			return
		case err != nil:
			f := failf("invalid_output", "step %q: the answer does not fit the schema", p.name)
			if wrong != nil {
				f.Detail, f.Detailed = strings.ToValidUTF8(wrong.Error()[:min(len(wrong.Error()), maxDetail)], ""), true
			}
			w.failed(f)
			return
		}
		output = read
	}
	if len(output) > agents.MaxOutput {
		w.failed(failf("output_too_large", "step %q: the output has more than %d bytes", p.name, agents.MaxOutput))
		return
	}
	value := expression.Decode(output)
	if s.Name != "" {
		w.putRaw(s.Name, output)
	}
	if object, _ := value.(map[string]any); s.Approve != nil && object["approved"] != true {
		w.failed(failf("rejected", "step %q was not approved", p.name))
		return
	}
	w.then = leaving
}

// lost takes in that a step has failed, with branches that may have been under way.
func (w *walk) lost(p place, ev Event) {
	w.settle(p, ev.Branches)
	w.remember(p)
	if ev.Failure == nil {
		w.failed(failf("failed", "step %q failed", p.name))
		return
	}
	w.blame(p.name, *ev.Failure)
}

// blame has the step at the top fail, in words that name a step. Branches do not: where they are joined it is said which
// one failed, and many that failed alike are told of as one.
func (w *walk) blame(name string, f Failure) {
	switch {
	case len(w.at.Branch) > 0, strings.HasPrefix(f.Message, "step "): // one further in is named
	case f.Message == "":
		f.Message = fmt.Sprintf("step %q failed", name)
	default:
		f.Message = fmt.Sprintf("step %q: %s", name, f.Message)
	}
	w.failed(f)
}

// joined takes in how the branches of a step have ended.
func (w *walk) joined(p place, failed []BranchFailure) {
	if w.undoesBranches(p) {
		w.then = leaving
		if len(failed) > 0 {
			w.failed(failed[0].Failure)
		}
		return
	}
	w.settle(p, failed)
	w.then = leaving
	goOn := p.step.Parallel != nil && p.step.Parallel.OnError == agents.OnErrorContinue ||
		p.step.Map != nil && p.step.Map.OnError == agents.OnErrorContinue
	if len(failed) == 0 || goOn {
		return
	}
	w.remember(p)
	first := failed[0]
	for _, f := range failed {
		if first.Code == cancelled && f.Code != cancelled {
			first = f
		}
	}
	name := p.name
	if s := p.step.Parallel; s != nil && first.Index >= 0 && first.Index < len(s.Steps) {
		name = s.Steps[first.Index].Name
	}
	w.blame(name, first.Failure)
}

// remember has the branches compensated for that had come to their end when others failed.
func (w *walk) remember(p place) {
	if w.at.Undoing == nil && p.step.Compensates() {
		w.note(p)
	}
}

// settle notes which branches have failed where their outputs are.
func (w *walk) settle(p place, failed []BranchFailure) {
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
