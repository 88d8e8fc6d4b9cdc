package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
)

// maxTransitions bounds the transitions of one Advance: a loop of steps without actions, such as
// set steps, may never end.
const maxTransitions = 5000

const (
	maxMessageBytes = 300     // bytes of a failure's message, which enters histories
	maxUndo         = 4 << 10 // bytes of the paths of finished steps with compensations
)

// Advance returns the next action after an event. It is pure: it changes none of its arguments, and
// equal arguments give equal results. The error is an [ErrPosition], or one of env.Recall. A failure
// of a step is no error: the tree handles it.
func Advance(d *agents.Definition, position TreePosition, event Event, env Env) (Advanced, error) {
	in := &interpreter{definition: d, position: position.clone(), env: env, transitionsLeft: maxTransitions}
	if err := in.applyEvent(event); err != nil {
		return Advanced{}, err
	}
	for in.action == nil {
		in.next()
		if in.err != nil {
			return Advanced{}, in.err
		}
	}
	maps.DeleteFunc(in.done, func(path string, _ Done) bool { return in.position.Records[path] != 0 }) // the caller has stored these already
	return Advanced{Position: in.position, Changes: in.changes, Action: *in.action, RequiresSameState: in.hasSet, Done: in.done, Result: in.result}, nil
}

// clone copies what Advance changes of a position. Branch is shared: Advance does not change it.
func (pos TreePosition) clone() TreePosition {
	pos.Frames = append([]Frame(nil), pos.Frames...)
	pos.Undo = append([]string(nil), pos.Undo...)
	pos.Records = maps.Clone(pos.Records)
	if pos.Undoing != nil {
		pos.Undoing = new(*pos.Undoing)
	}
	return pos
}

// interpreter is one call of Advance. The event sets the first transition of the innermost step.
// next then makes one transition after the other, until one of them sets the action. A value is
// used once, by one goroutine.
type interpreter struct {
	definition      *agents.Definition // the tree; read only
	position        TreePosition       // a copy, which becomes that of the Advanced
	env             Env                // State has the changes so far
	variableCache   map[string]any     // cached variables of expressions; nil = compute them again
	event           Event              // the event of this call
	hasSet          bool               // a set step has run (see Advanced.RequiresSameState)
	done            map[string]Done    // read or made in this call, by path
	changes         []Change           // for clients, in order
	transition      transition         // of the innermost step, next
	failure         Failure            // of the innermost step, if it fails
	transitionsLeft int                // transitions until failExhausted
	action          *Action            // set = it is the result
	result          json.RawMessage    // of the agent; nil = none
	err             error              // the first defect; Advance returns it
}

// transition is what happens to the innermost step next. It is not part of the position: the event
// of the next Advance determines it.
type transition int

const (
	entering transition = iota // it begins, or begins its next try
	leaving                    // it has ended
	failing                    // it has failed
)

// next makes one transition of the innermost step. If the deadline of a step around it has passed,
// that step fails instead; the innermost step's own deadline is checked when it begins.
func (in *interpreter) next() {
	open, err := in.openSteps()
	if err != nil {
		in.err = err
		return
	}
	if in.transitionsLeft--; in.transitionsLeft == 0 {
		in.failExhausted(open)
		return
	}
	top := open[len(open)-1]
	// A step that has just ended keeps its result, even if a deadline has passed.
	if i := in.expiredStep(open); i >= 0 && in.transition != leaving {
		in.failFrom(open, i)
		return
	}
	switch in.transition {
	case entering:
		in.enterStep(top)
	case leaving:
		in.endStep(top)
	case failing:
		in.onFailure(top)
	}
}

// failExhausted fails the tree, because its steps do not come to an end. Finished steps are
// compensated, with a new bound of transitions.
func (in *interpreter) failExhausted(open []openStep) {
	in.closeSteps(open, 0)
	in.position.Frames, in.transitionsLeft = nil, maxTransitions
	in.failure = newFailure("limit_steps", "more than %d steps in a row without a wait", maxTransitions)
	in.failPipeline()
}

// closeSteps tells clients the end of the open steps, from the innermost one to open[to]. The
// innermost one is left out if it has not begun (entering).
func (in *interpreter) closeSteps(open []openStep, to int) {
	for i := len(open) - 1; i >= to; i-- {
		if hasBegun := i < len(open)-1 || in.transition != entering; hasBegun {
			in.addChange(Change{Finished: open[i].name})
		}
	}
}

// addChange adds a change for clients.
func (in *interpreter) addChange(c Change) { in.changes = append(in.changes, c) }

// newFailure returns a failure. The message must not have content.
func newFailure(code, format string, args ...any) Failure {
	return Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failInnermost fails the innermost step, in the next transition. It cuts the message to
// maxMessageBytes.
func (in *interpreter) failInnermost(f Failure) {
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), maxMessageBytes)], "")
	in.transition, in.failure = failing, f
}

// top returns the frame of the innermost open step. The pointer is valid until the next push or
// pop.
func (in *interpreter) top() *Frame { return &in.position.Frames[len(in.position.Frames)-1] }

// push opens a step in the innermost one; the next transition enters it.
func (in *interpreter) push(f Frame) {
	in.position.Frames = append(in.position.Frames, f)
	in.transition = entering
}

// enterFirst opens the first step of a list in the innermost step.
func (in *interpreter) enterFirst(steps []agents.Step) {
	if len(steps) == 0 { // only in a tree that was not validated
		in.transition = leaving
		return
	}
	in.push(Frame{})
}

// pop removes the innermost step from the position.
func (in *interpreter) pop() { in.position.Frames = in.position.Frames[:len(in.position.Frames)-1] }

// expiredStep returns the index of the outermost open step whose deadline has passed; -1 = none.
// The innermost step does not count.
func (in *interpreter) expiredStep(open []openStep) int {
	for i, p := range open[:len(open)-1] {
		if d := p.frame.Deadline; !d.IsZero() && !in.env.Now.Before(d) {
			return i
		}
	}
	return -1
}

// failFrom closes the steps in open[to], whose deadline has passed, and fails that step.
func (in *interpreter) failFrom(open []openStep, to int) {
	in.closeSteps(open, to+1)
	in.position.Frames = in.position.Frames[:to+1]
	in.failInnermost(newFailure("timeout", "step %q took longer than %s", open[to].name, open[to].step.Timeout))
}

// deadline returns the earliest deadline of the open steps; zero = none has one.
func (in *interpreter) deadline() time.Time {
	var first time.Time
	for _, f := range in.position.Frames {
		if !f.Deadline.IsZero() && (first.IsZero() || f.Deadline.Before(first)) {
			first = f.Deadline
		}
	}
	return first
}

// endStep closes a step that has ended, notes it for compensation, and goes to the next step. A
// step whose onError steps have run has failed, and is not compensated.
func (in *interpreter) endStep(p openStep) {
	in.addChange(Change{Finished: p.name, Path: in.beginPath(p)})
	if p.frame.Failure == nil && in.compensates(p) {
		in.recordDone(p)
	}
	in.goToSibling(p)
}

// compensates reports whether a step has to be compensated if a later one fails. While compensation
// runs, no step does.
func (in *interpreter) compensates(p openStep) bool {
	return in.position.Undoing == nil && (p.step.Compensate != nil || p.step.Compensates())
}

// goToSibling goes to the next step of the list of p, or ends the step around it. After the last
// step of the root list it ends the tree.
func (in *interpreter) goToSibling(p openStep) {
	index := p.frame.At
	in.pop()
	switch {
	case index+1 < p.listLength:
		in.push(Frame{At: index + 1})
	case len(in.position.Frames) == 0:
		in.finishPipeline()
	default:
		in.onInnerEnd()
	}
}

// onInnerEnd ends a step when the steps in it have ended, or begins the next round of a loop.
func (in *interpreter) onInnerEnd() {
	in.transition = leaving
	open, err := in.openSteps()
	if err != nil {
		in.err = err
		return
	}
	p := open[len(open)-1]
	if l := p.step.Loop; l != nil && p.frame.Failure == nil {
		in.nextRound(p, l)
	}
}

// nextRound begins the next round of a loop, unless its condition holds or its rounds are used up:
// then the loop ends. A loop that reaches its maximum does not fail.
func (in *interpreter) nextRound(p openStep, l *agents.LoopStep) {
	if l.Until != "" {
		done, f := in.evaluateCondition(p, "loop.until", l.Until)
		switch {
		case f != nil:
			in.failInnermost(*f)
			return
		case done:
			return
		}
	}
	if p.frame.Round < l.Max {
		in.top().Round++
		in.enterFirst(l.Steps)
	}
}

// onFailure handles a failed step, in this order: another try, onError: continue, onError steps, or
// the step around it fails too. A failure within onError steps is not handled again by the same
// step.
func (in *interpreter) onFailure(p openStep) {
	if p.frame.Failure == nil {
		switch onError := p.step.OnError; {
		case in.waitForRetry(p):
			return
		case onError.Continue:
			in.putError(p)
			in.addChange(Change{Finished: p.name, Path: in.beginPath(p)})
			in.goToSibling(p)
			return
		case onError.Steps != nil:
			f := in.top()
			// The step's own deadline does not bound its onError steps.
			f.Failure, f.Deadline = new(in.failure), time.Time{}
			in.enterFirst(onError.Steps)
			return
		}
	}
	in.addChange(Change{Finished: p.name})
	in.pop()
	if len(in.position.Frames) == 0 {
		in.failPipeline()
	}
}

// putError makes the failure of a step its output. The decision of a rejected approval stays in the
// output.
func (in *interpreter) putError(p openStep) {
	switch {
	case p.step.Name == "":
	case p.step.Approve != nil && in.failure.Code == "rejected":
		in.put(p.step.Name, errorValue(in.failure), "error")
	default:
		in.put(p.step.Name, map[string]any{"error": errorValue(in.failure)})
	}
}

// waitForRetry sets the action that waits for the next try of a step, and reports whether there is
// one. Rejections and cancels are not retried, and no try begins after the deadline. The step's
// deadline covers all its tries.
func (in *interpreter) waitForRetry(p openStep) bool {
	r := p.step.Retry
	if r == nil || p.frame.Try+1 >= r.Attempts || in.failure.Code == "rejected" || in.failure.Code == codeCancelled {
		return false
	}
	pause := r.Pause(p.frame.Try + 1)
	if d := in.deadline(); !d.IsZero() && !in.env.Now.Add(pause).Before(d) {
		return false
	}
	in.addChange(Change{Finished: p.name})
	// A new try begins without the case, round and repairs of the last one.
	*in.top() = Frame{At: p.frame.At, Try: p.frame.Try + 1, Deadline: p.frame.Deadline, Waiting: true}
	in.action = &Action{Path: p.path, Name: p.name, Deadline: in.deadline(), Sleep: pause}
	return true
}

// errorValue returns a failure as a value of expressions and of the state.
func errorValue(f Failure) map[string]any {
	return map[string]any{"code": f.Code, "message": f.Text()}
}

// openStep is an open step: its definition, its frame in the position, and its path. Only openSteps
// makes it; it is valid until the frames change.
type openStep struct {
	step *agents.Step
	// listLength is the length of the list in which the step is; frame.At is its index there.
	listLength int
	// path has rounds and tries; name is the one in STEP_STARTED, without them. Both begin with the
	// steps around this one.
	path, name string
	frame      *Frame
}

// stepList is a list of steps that run one after the other, with path and name of the step around
// it.
type stepList struct {
	steps      []agents.Step
	path, name string
}
