package pipeline

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
)

// maxTransitions bounds what happens between two events: a loop that only sets things goes round and round.
const maxTransitions = 5000

const (
	maxWords  = 300     // bytes of a failure's message
	maxDetail = 500     // bytes of its detail
	maxUndo   = 4 << 10 // bytes of the paths of what may have to be compensated for
)

// Advance tells what comes next. It is pure: the same gives the same. The error is an [ErrCursor]; whatever
// fails in the steps themselves is a [Failure] and takes its course.
func Advance(d *agents.Definition, at Cursor, ev Event, env Env) (Move, error) {
	w := &walk{d: d, at: at.clone(), env: env, left: maxTransitions}
	if err := w.take(ev); err != nil {
		return Move{}, err
	}
	for w.action == nil {
		w.next()
		if w.err != nil {
			return Move{}, w.err
		}
	}
	maps.DeleteFunc(w.noted, func(path string, _ Done) bool { return w.at.Records[path] != 0 }) // they are kept already
	return Move{Cursor: w.at, Changes: w.changes, Action: *w.action, Sets: w.sets, Done: w.noted}, nil
}

// clone keeps what the caller has from being changed.
func (c Cursor) clone() Cursor {
	c.Frames = append([]Frame(nil), c.Frames...)
	c.Undo = append([]string(nil), c.Undo...)
	c.Records = maps.Clone(c.Records)
	if c.Undoing != nil {
		c.Undoing = new(*c.Undoing)
	}
	return c
}

// walk is one Advance.
type walk struct {
	d       *agents.Definition
	at      Cursor
	env     Env
	seen    map[string]any // what expressions see; nil = the state has changed since
	ended   Event          // how the branches at the top have ended
	sets    bool
	noted   map[string]Done // what is done of steps, by path
	changes []Change
	then    transition
	failure Failure // of the step at the top, if it fails
	left    int
	action  *Action // set = that is what comes next
	err     error
}

// transition is what happens to the step at the top of the frames.
type transition int

const (
	entering transition = iota // it begins, or is tried again
	leaving                    // it has come to its end
	failing                    // it has failed
)

func (w *walk) next() {
	places, err := w.places()
	if err != nil {
		w.err = err
		return
	}
	if w.left--; w.left == 0 {
		w.exhausted(places)
		return
	}
	top := places[len(places)-1]
	if i := w.expired(places); i >= 0 && w.then != leaving {
		w.collapse(places, i)
		return
	}
	switch w.then {
	case entering:
		w.enter(top)
	case leaving:
		w.leave(top)
	case failing:
		w.fail(top)
	}
}

// exhausted ends a walk that does not come to an end. What is done is compensated for all the same.
func (w *walk) exhausted(places []place) {
	w.close(places, 0)
	w.at.Frames, w.left = nil, maxTransitions
	w.failure = failf("limit_steps", "more than %d steps without anything to wait for", maxTransitions)
	w.abort()
}

// close tells that the steps from the innermost up to one of them are over.
func (w *walk) close(places []place, to int) {
	for i := len(places) - 1; i >= to; i-- {
		if begun := i < len(places)-1 || w.then != entering; begun {
			w.tell(Change{Finished: places[i].name})
		}
	}
}

func (w *walk) tell(c Change) { w.changes = append(w.changes, c) }

func failf(code, format string, args ...any) Failure {
	return Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failed has the step at the top fail.
func (w *walk) failed(f Failure) {
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), maxWords)], "")
	w.then, w.failure = failing, f
}

// top is the innermost of the open steps.
func (w *walk) top() *Frame { return &w.at.Frames[len(w.at.Frames)-1] }

func (w *walk) push(f Frame) {
	w.at.Frames = append(w.at.Frames, f)
	w.then = entering
}

// into begins the first of the steps in the one at the top.
func (w *walk) into(steps []agents.Step) {
	if len(steps) == 0 { // only a tree that nobody has checked
		w.then = leaving
		return
	}
	w.push(Frame{})
}

func (w *walk) pop() { w.at.Frames = w.at.Frames[:len(w.at.Frames)-1] }

// expired finds the outermost of the steps around the one at the top whose time is over; -1 = none's is.
func (w *walk) expired(places []place) int {
	for i, p := range places[:len(places)-1] {
		if d := p.frame.Deadline; !d.IsZero() && !w.env.Now.Before(d) {
			return i
		}
	}
	return -1
}

// collapse ends what stands in a step whose time is over, and has that fail.
func (w *walk) collapse(places []place, to int) {
	w.close(places, to+1)
	w.at.Frames = w.at.Frames[:to+1]
	w.failed(failf("timeout", "step %q took longer than %s", places[to].name, places[to].step.Timeout))
}

// deadline is the earliest of the open steps.
func (w *walk) deadline() time.Time {
	var first time.Time
	for _, f := range w.at.Frames {
		if !f.Deadline.IsZero() && (first.IsZero() || f.Deadline.Before(first)) {
			first = f.Deadline
		}
	}
	return first
}

// leave goes on behind a step that has come to its end.
func (w *walk) leave(p place) {
	w.tell(Change{Finished: p.name})
	if p.frame.Failure == nil && w.compensates(p) {
		w.note(p)
	}
	w.forward(p)
}

// compensates tells whether there is something to do, if what comes later fails.
func (w *walk) compensates(p place) bool {
	return w.at.Undoing == nil && (p.step.Compensate != nil || p.step.Compensates())
}

// forward goes to the step behind one that is over, or out of what that stands in.
func (w *walk) forward(p place) {
	at := p.frame.At
	w.pop()
	switch {
	case at+1 < p.of:
		w.push(Frame{At: at + 1})
	case len(w.at.Frames) == 0:
		w.end()
	default:
		w.inner()
	}
}

// inner decides what becomes of a step when the steps in it have come to their end.
func (w *walk) inner() {
	w.then = leaving
	places, err := w.places()
	if err != nil {
		w.err = err
		return
	}
	p := places[len(places)-1]
	if l := p.step.Loop; l != nil && p.frame.Failure == nil {
		w.again(p, l)
	}
}

// again begins the next round of a loop, unless it is done.
func (w *walk) again(p place, l *agents.LoopStep) {
	if l.Until != "" {
		done, f := w.holds(p, "loop.until", l.Until)
		switch {
		case f != nil:
			w.failed(*f)
			return
		case done:
			return
		}
	}
	if p.frame.Round < l.Max {
		w.top().Round++
		w.into(l.Steps)
	}
}

// fail decides what becomes of a step that has failed: it is tried again, or lived with, or what it stands in
// fails too.
func (w *walk) fail(p place) {
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
			w.into(on.Steps)
			return
		}
	}
	w.tell(Change{Finished: p.name})
	w.pop()
	if len(w.at.Frames) == 0 {
		w.abort()
	}
}

// putError makes the failure of a step its output. What a person answered stays beside it.
func (w *walk) putError(p place) {
	switch {
	case p.step.Name == "":
	case p.step.Approve != nil && w.failure.Code == "rejected":
		w.put(p.step.Name, errorValue(w.failure), "error")
	default:
		w.put(p.step.Name, map[string]any{"error": errorValue(w.failure)})
	}
}

// retry waits to try a step again, if there is a try and the time left.
func (w *walk) retry(p place) bool {
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

// errorValue is what expressions and the state see of a failure.
func errorValue(f Failure) map[string]any {
	return map[string]any{"code": f.Code, "message": f.Text()}
}
