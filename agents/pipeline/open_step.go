package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
)

// Marks after a step's name in a path, besides the number of its try.
const (
	undoMark  = "~undo"  // its compensation
	errorMark = "~error" // its onError steps
)

// ErrCursor tells that a cursor does not fit the tree, or an event the cursor.
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

// Inline returns the agent that an action's step defines inline. What the step leaves out is taken
// from the agent of the pipeline.
func Inline(d *agents.Definition, path string) (*agents.Definition, error) {
	s := StepAt(d, path)
	if s == nil || s.Agent == nil || s.Agent.Name != "" {
		return nil, fmt.Errorf("%w: no agent stands at %q", ErrCursor, path)
	}
	name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "~")
	return d.Inline(name, s.Agent), nil
}

// root returns the list of the outermost frame.
func (w *interpreter) root() (list, error) {
	in, err := w.beginning()
	if err != nil || w.at.Undoing == nil {
		return in, err
	}
	branch := in.path
	if w.at.isUndo() { // another branch has done the steps that this one compensates
		fork := w.at.Branch[len(w.at.Branch)-1].Path
		branch = strings.TrimSuffix(fork, undoMark) + strings.TrimPrefix(branch, fork)
	}
	return w.undoRoot(branch)
}

// beginning returns the list with which the tree, or the branch, begins.
func (w *interpreter) beginning() (list, error) {
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

// undoRoot returns the compensation of the last finished step. A step whose branches have
// compensations stands for them.
func (w *interpreter) undoRoot(branch string) (list, error) {
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

// nameOf returns a path without rounds, tries and marks.
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

// openSteps returns the open steps, by the frames.
func (w *interpreter) openSteps() ([]openStep, error) {
	in, err := w.root()
	if err != nil {
		return nil, err
	}
	undoing := w.at.Undoing != nil
	all := make([]openStep, len(w.at.Frames))
	for i := range w.at.Frames {
		f := &w.at.Frames[i]
		if f.At < 0 || f.At >= len(in.steps) {
			return nil, fmt.Errorf("%w: step %d of %d in %q", ErrCursor, f.At, len(in.steps), in.path)
		}
		p := openStep{step: &in.steps[f.At], of: len(in.steps), frame: f}
		if undoing && i == 0 {
			p.path, p.name = in.path+undoMark, in.name+"/compensate"
		} else {
			p.path, p.name = childPath(in.path, p.step.Name), childPath(in.name, p.step.Name)
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

func childPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// inner returns the steps of an open step that run now.
func (p openStep) inner() (list, error) {
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
