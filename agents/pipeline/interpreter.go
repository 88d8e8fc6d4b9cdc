package pipeline

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
)

// maxTransitions bounds the transitions between two events: a loop of set steps may never end.
const maxTransitions = 5000

const (
	maxWords  = 300     // bytes of a failure's message
	maxDetail = 500     // bytes of its detail
	maxUndo   = 4 << 10 // bytes of the paths of finished steps with compensations
)

// Advance returns the next action after an event. It is pure. The error is an [ErrCursor]. A
// failure of a step is no error: the tree handles it.
func Advance(d *agents.Definition, at Cursor, ev Event, env Env) (Move, error) {
	w := &interpreter{d: d, at: at.clone(), env: env, left: maxTransitions}
	if err := w.takeEvent(ev); err != nil {
		return Move{}, err
	}
	for w.action == nil {
		w.next()
		if w.err != nil {
			return Move{}, w.err
		}
	}
	maps.DeleteFunc(w.noted, func(path string, _ Done) bool { return w.at.Records[path] != 0 }) // stored before
	return Move{Cursor: w.at, Changes: w.changes, Action: *w.action, Sets: w.sets, Done: w.noted}, nil
}

// clone copies what Advance changes of a cursor.
func (c Cursor) clone() Cursor {
	c.Frames = append([]Frame(nil), c.Frames...)
	c.Undo = append([]string(nil), c.Undo...)
	c.Records = maps.Clone(c.Records)
	if c.Undoing != nil {
		c.Undoing = new(*c.Undoing)
	}
	return c
}

// interpreter is one call of Advance.
type interpreter struct {
	d       *agents.Definition
	at      Cursor
	env     Env
	seen    map[string]any // variables of expressions; nil = the state has changed since
	ended   Event          // how the branches of the innermost step have ended
	sets    bool
	noted   map[string]Done // by path
	changes []Change
	then    transition
	failure Failure // of the innermost step, if it fails
	left    int
	action  *Action // set = it is the result
	err     error
}

// transition is what happens to the innermost step.
type transition int

const (
	entering transition = iota // it begins, or begins its next try
	leaving                    // it has ended
	failing                    // it has failed
)

func (w *interpreter) next() {
	places, err := w.openSteps()
	if err != nil {
		w.err = err
		return
	}
	if w.left--; w.left == 0 {
		w.exhausted(places)
		return
	}
	top := places[len(places)-1]
	if i := w.expiredStep(places); i >= 0 && w.then != leaving {
		w.failFrom(places, i)
		return
	}
	switch w.then {
	case entering:
		w.enter(top)
	case leaving:
		w.endStep(top)
	case failing:
		w.onFailure(top)
	}
}

// exhausted fails steps that do not come to an end. Finished steps are compensated.
func (w *interpreter) exhausted(places []openStep) {
	w.closeSteps(places, 0)
	w.at.Frames, w.left = nil, maxTransitions
	w.failure = failf("limit_steps", "more than %d steps without anything to wait for", maxTransitions)
	w.failTree()
}

// closeSteps tells clients the end of the steps from the innermost up to one of them.
func (w *interpreter) closeSteps(places []openStep, to int) {
	for i := len(places) - 1; i >= to; i-- {
		if begun := i < len(places)-1 || w.then != entering; begun {
			w.tell(Change{Finished: places[i].name})
		}
	}
}

func (w *interpreter) tell(c Change) { w.changes = append(w.changes, c) }

func failf(code, format string, args ...any) Failure {
	return Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failTop fails the innermost step.
func (w *interpreter) failTop(f Failure) {
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), maxWords)], "")
	w.then, w.failure = failing, f
}

// top returns the innermost open step.
func (w *interpreter) top() *Frame { return &w.at.Frames[len(w.at.Frames)-1] }

func (w *interpreter) push(f Frame) {
	w.at.Frames = append(w.at.Frames, f)
	w.then = entering
}

// enterFirst begins the first step in the innermost one.
func (w *interpreter) enterFirst(steps []agents.Step) {
	if len(steps) == 0 { // only in a tree that was not validated
		w.then = leaving
		return
	}
	w.push(Frame{})
}

func (w *interpreter) pop() { w.at.Frames = w.at.Frames[:len(w.at.Frames)-1] }

// expiredStep finds the outermost open step whose deadline has passed; -1 = none.
func (w *interpreter) expiredStep(places []openStep) int {
	for i, p := range places[:len(places)-1] {
		if d := p.frame.Deadline; !d.IsZero() && !w.env.Now.Before(d) {
			return i
		}
	}
	return -1
}

// failFrom ends the steps in a step whose deadline has passed, and fails that step.
func (w *interpreter) failFrom(places []openStep, to int) {
	w.closeSteps(places, to+1)
	w.at.Frames = w.at.Frames[:to+1]
	w.failTop(failf("timeout", "step %q took longer than %s", places[to].name, places[to].step.Timeout))
}

// deadline returns the earliest one of the open steps.
func (w *interpreter) deadline() time.Time {
	var first time.Time
	for _, f := range w.at.Frames {
		if !f.Deadline.IsZero() && (first.IsZero() || f.Deadline.Before(first)) {
			first = f.Deadline
		}
	}
	return first
}

// endStep continues after a step that has ended.
func (w *interpreter) endStep(p openStep) {
	w.tell(Change{Finished: p.name})
	if p.frame.Failure == nil && w.compensates(p) {
		w.noteDone(p)
	}
	w.forward(p)
}

// compensates reports whether a step has to be compensated if a later one fails.
func (w *interpreter) compensates(p openStep) bool {
	return w.at.Undoing == nil && (p.step.Compensate != nil || p.step.Compensates())
}

// forward goes to the next step of the list, or ends the step around it.
func (w *interpreter) forward(p openStep) {
	at := p.frame.At
	w.pop()
	switch {
	case at+1 < p.of:
		w.push(Frame{At: at + 1})
	case len(w.at.Frames) == 0:
		w.endTree()
	default:
		w.onInnerEnd()
	}
}

// onInnerEnd decides what becomes of a step when the steps in it have ended.
func (w *interpreter) onInnerEnd() {
	w.then = leaving
	places, err := w.openSteps()
	if err != nil {
		w.err = err
		return
	}
	p := places[len(places)-1]
	if l := p.step.Loop; l != nil && p.frame.Failure == nil {
		w.nextRound(p, l)
	}
}

// nextRound begins the next round of a loop, unless the loop is done.
func (w *interpreter) nextRound(p openStep, l *agents.LoopStep) {
	if l.Until != "" {
		done, f := w.holds(p, "loop.until", l.Until)
		switch {
		case f != nil:
			w.failTop(*f)
			return
		case done:
			return
		}
	}
	if p.frame.Round < l.Max {
		w.top().Round++
		w.enterFirst(l.Steps)
	}
}

// onFailure decides what becomes of a failed step: it is tried again, its onError steps run, or the
// step around it fails too.
func (w *interpreter) onFailure(p openStep) {
	if p.frame.Failure == nil {
		switch on := p.step.OnError; {
		case w.retry(p):
			return
		case on.Continue:
			w.putError(p)
			w.tell(Change{Finished: p.name})
			w.forward(p)
			return
		case on.Steps != nil:
			f := w.top()
			f.Failure, f.Deadline = new(w.failure), time.Time{}
			w.enterFirst(on.Steps)
			return
		}
	}
	w.tell(Change{Finished: p.name})
	w.pop()
	if len(w.at.Frames) == 0 {
		w.failTree()
	}
}

// putError makes the failure of a step its output. A person's answer stays.
func (w *interpreter) putError(p openStep) {
	switch {
	case p.step.Name == "":
	case p.step.Approve != nil && w.failure.Code == "rejected":
		w.put(p.step.Name, errorValue(w.failure), "error")
	default:
		w.put(p.step.Name, map[string]any{"error": errorValue(w.failure)})
	}
}

// retry waits for the next try of a step, if it has tries and time left.
func (w *interpreter) retry(p openStep) bool {
	r := p.step.Retry
	if r == nil || p.frame.Try+1 >= r.Attempts || w.failure.Code == "rejected" || w.failure.Code == cancelled {
		return false
	}
	pause := r.Pause(p.frame.Try + 1)
	if d := w.deadline(); !d.IsZero() && !w.env.Now.Add(pause).Before(d) {
		return false
	}
	w.tell(Change{Finished: p.name})
	*w.top() = Frame{At: p.frame.At, Try: p.frame.Try + 1, Deadline: p.frame.Deadline, Waiting: true}
	w.action = &Action{Path: p.path, Name: p.name, Deadline: w.deadline(), Sleep: pause}
	return true
}

// errorValue returns a failure as a value of expressions and of the state.
func errorValue(f Failure) map[string]any {
	return map[string]any{"code": f.Code, "message": f.Text()}
}

// openStep is an open step, and its path.
type openStep struct {
	step *agents.Step
	// of is the length of the step's list.
	of int
	// path has tries and rounds, name has not; both are the step's own.
	path, name string
	frame      *Frame
}

// list is a list of steps that run one after the other, and its path.
type list struct {
	steps      []agents.Step
	path, name string
}
