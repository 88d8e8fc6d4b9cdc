package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
)

// This file begins a tree after a step that another run has finished.

// beginPath returns the path after which a tree may begin when p has ended; "" = it may not.
func (in *interpreter) beginPath(p openStep) string {
	hasFailed := slices.ContainsFunc(in.position.Frames, func(f Frame) bool { return f.Failure != nil })
	if hasFailed || in.position.Undoing != nil || len(in.position.Branch) > 0 {
		return ""
	}
	segments := strings.Split(p.path, "/")
	for i := range segments {
		segments[i], _, _ = strings.Cut(segments[i], "~") // the number of a try
	}
	return strings.Join(segments, "/")
}

// HasStepAt reports whether a tree can begin after the step with a path (Change.Path).
func HasStepAt(d *agents.Definition, path string) bool {
	in := &interpreter{definition: d}
	_, err := in.openPath(path)
	return err == nil
}

// beginAfter begins the tree after the step with a path. The steps around that step begin again: with
// a new deadline, and without the tries that they have had.
func (in *interpreter) beginAfter(path string) error {
	open, err := in.openPath(path)
	if err != nil {
		return err
	}
	for _, p := range open[:len(open)-1] {
		in.addChange(Change{Started: p.name})
		if p.step.Timeout > 0 {
			p.frame.Deadline = in.env.Now.Add(p.step.Timeout)
		}
	}
	in.goToSibling(open[len(open)-1])
	return nil
}

// openPath opens the step with a path and the steps around it, and returns them. The error is an
// ErrPosition if the tree has no such step, or if it is in a branch.
func (in *interpreter) openPath(path string) ([]openStep, error) {
	list := in.definition.Steps
	for segments := strings.Split(path, "/"); ; {
		at := slices.IndexFunc(list, func(s agents.Step) bool { return s.Name == segments[0] })
		if at < 0 {
			return nil, fmt.Errorf("%w: there is no step %q", ErrPosition, path)
		}
		frame, step := Frame{At: at}, &list[at]
		if segments = segments[1:]; len(segments) == 0 {
			in.position.Frames = append(in.position.Frames, frame)
			return in.openSteps()
		}
		if step.Loop != nil {
			frame.Round, _ = strconv.Atoi(segments[0])
			segments = segments[1:]
		}
		list, frame.Case = innerList(step, segments)
		if list == nil || step.Loop != nil && frame.Round < 1 {
			return nil, fmt.Errorf("%w: there is no step %q", ErrPosition, path)
		}
		in.position.Frames = append(in.position.Frames, frame)
	}
}

// innerList returns the list of steps in a step that has the first of the names, and the index of its
// case. It is nil if there is none.
func innerList(s *agents.Step, names []string) (list []agents.Step, index int) {
	has := func(list []agents.Step) bool {
		return len(names) > 0 && slices.ContainsFunc(list, func(inner agents.Step) bool { return inner.Name == names[0] })
	}
	switch {
	case has(s.Steps):
		return s.Steps, 0
	case s.Loop != nil && has(s.Loop.Steps):
		return s.Loop.Steps, 0
	}
	for i, c := range s.Route {
		if has(c.Steps) {
			return c.Steps, i
		}
	}
	return nil, 0
}
