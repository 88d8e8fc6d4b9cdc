package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
)

// What stands behind a step's name in a path, besides the number of its try.
const (
	undoMark  = "~undo"  // what compensates for it
	errorMark = "~error" // what runs since it failed
)

// ErrCursor is a cursor that does not fit the tree, or an event that does not fit the cursor.
var ErrCursor = errors.New("pipeline: cursor")

// StepAt finds the step of an action by its path; nil = there is none.
func StepAt(d *agents.Definition, path string) *agents.Step {
	last := path[strings.LastIndexByte(path, '/')+1:]
	name, marks, _ := strings.Cut(last, "~")
	s := d.FindStep(name)
	if s != nil && s.Compensate != nil && strings.Contains("~"+marks+"~", undoMark+"~") {
		return s.Compensate
	}
	return s
}

// Inline is the agent that stands at the step of an action: complete, with what it does not say taken from the
// agent whose steps these are.
func Inline(d *agents.Definition, path string) (*agents.Definition, error) {
	s := StepAt(d, path)
	if s == nil || s.Agent == nil || s.Agent.Name != "" {
		return nil, fmt.Errorf("%w: no agent stands at %q", ErrCursor, path)
	}
	name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "~")
	return d.Inline(name, s.Agent), nil
}

// place is an open step and the way to it.
type place struct {
	step *agents.Step
	// of is how many steps stand in the list that it stands in.
	of int
	// path has tries and rounds, name has not; both are the step's own.
	path, name string
	frame      *Frame
}

// list is steps that run one after the other, and the way to them.
type list struct {
	steps      []agents.Step
	path, name string
}

// root is where the frames begin.
func (w *walk) root() (list, error) {
	in, err := w.beginning()
	if err != nil || w.at.Undoing == nil {
		return in, err
	}
	branch := in.path
	if w.at.isUndo() { // it is another one that has done what this one compensates for
		fork := w.at.Branch[len(w.at.Branch)-1].Path
		branch = strings.TrimSuffix(fork, undoMark) + strings.TrimPrefix(branch, fork)
	}
	return w.undoRoot(branch)
}

// beginning is where the walk begins: the tree, or a branch.
func (w *walk) beginning() (list, error) {
	if len(w.at.Branch) == 0 {
		return list{steps: w.d.Steps}, nil
	}
	fork := w.at.Branch[len(w.at.Branch)-1]
	switch s := StepAt(w.d, fork.Path); {
	case s != nil && s.Map != nil && fork.Index >= 0:
		return list{steps: s.Map.Steps, path: fork.Path + "/" + strconv.Itoa(fork.Index)}, nil
	case s != nil && s.Parallel != nil && fork.Index >= 0 && fork.Index < len(s.Parallel.Steps):
		return list{steps: s.Parallel.Steps[fork.Index : fork.Index+1], path: fork.Path}, nil
	}
	return list{}, fmt.Errorf("%w: there is no branch %d of %q", ErrCursor, fork.Index, fork.Path)
}

// undoRoot is what compensates for the last of the steps that finished. One whose branches have compensations
// stands for those.
func (w *walk) undoRoot(branch string) (list, error) {
	if len(w.at.Undo) == 0 {
		return list{}, nil
	}
	path := w.at.Undo[len(w.at.Undo)-1]
	s := StepAt(w.d, path)
	if s == nil {
		return list{}, fmt.Errorf("%w: there is no step at %q", ErrCursor, path)
	}
	undo := agents.Step{Name: s.Name, Parallel: s.Parallel, Map: s.Map}
	if s.Compensate != nil {
		undo = *s.Compensate
	}
	return list{steps: []agents.Step{undo}, path: path, name: nameOf(strings.TrimPrefix(path, branch+"/"))}, nil
}

// nameOf leaves out of a path what is not told to clients.
func nameOf(path string) string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(segment, "~")
		if name != "" && (name[0] < '0' || name[0] > '9') {
			names = append(names, name)
		}
	}
	return strings.Join(names, "/")
}

// places follows the frames.
func (w *walk) places() ([]place, error) {
	in, err := w.root()
	if err != nil {
		return nil, err
	}
	undoing := w.at.Undoing != nil
	all := make([]place, len(w.at.Frames))
	for i := range w.at.Frames {
		f := &w.at.Frames[i]
		if f.At < 0 || f.At >= len(in.steps) {
			return nil, fmt.Errorf("%w: step %d of %d in %q", ErrCursor, f.At, len(in.steps), in.path)
		}
		p := place{step: &in.steps[f.At], of: len(in.steps), frame: f}
		if undoing && i == 0 {
			p.path, p.name = in.path+undoMark, in.name+"/compensate"
		} else {
			p.path, p.name = under(in.path, p.step.Name), under(in.name, p.step.Name)
		}
		if f.Try > 0 {
			p.path += "~" + strconv.Itoa(f.Try+1)
		}
		all[i] = p
		if i+1 < len(w.at.Frames) {
			if in, err = p.inner(); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// inner are the steps in the open step that are being walked.
func (p place) inner() (list, error) {
	s, f := p.step, p.frame
	switch {
	case f.Failure != nil:
		return list{s.OnError.Steps, p.path + errorMark, p.name}, nil
	case s.Steps != nil:
		return list{s.Steps, p.path, p.name}, nil
	case f.Case >= 0 && f.Case < len(s.Route):
		return list{s.Route[f.Case].Steps, p.path, p.name}, nil
	case s.Loop != nil:
		return list{s.Loop.Steps, p.path + "/" + strconv.Itoa(f.Round), p.name}, nil
	}
	return list{}, fmt.Errorf("%w: nothing stands in %q", ErrCursor, p.path)
}
