package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
)

// Marks after a step's name in a path. The number of its try is one, too, as in "write~3".
const (
	undoMark  = "~undo"  // its compensation
	errorMark = "~error" // its onError steps
)

// ErrPosition is wrapped by errors for a position that does not fit the tree, or an event that does
// not fit the position. It is a defect of the caller, or of a definition that was not validated.
var ErrPosition = errors.New("pipeline: tree position")

// StepAt returns the step of an action by its path; nil = there is none. The last segment decides:
// names are unique in a tree. With the mark ~undo it is the step's compensation, if it has one.
func StepAt(d *agents.Definition, path string) *agents.Step {
	segment := path[strings.LastIndexByte(path, '/')+1:]
	name, marks, _ := strings.Cut(segment, "~")
	s := d.FindStep(name)
	if s != nil && s.Compensate != nil && strings.Contains("~"+marks+"~", undoMark+"~") {
		return s.Compensate
	}
	return s
}

// IsHidden reports whether the step at a path, or one that contains it, is hidden.
func IsHidden(d *agents.Definition, path string) bool {
	for end := 0; end < len(path); end++ {
		if n := strings.IndexByte(path[end:], '/'); n >= 0 {
			end += n
		} else {
			end = len(path)
		}
		name, _, _ := strings.Cut(path[strings.LastIndexByte(path[:end], '/')+1:end], "~")
		if s := d.FindStep(name); s != nil && s.Hidden {
			return true
		}
		if s := StepAt(d, path[:end]); s != nil && s.Hidden {
			return true // a compensation
		}
	}
	return false
}

// Inline returns the agent that an action's step defines inline. What the step leaves out is that
// of the pipeline's agent. The error is an ErrPosition if the step has no inline agent.
func Inline(d *agents.Definition, path string) (*agents.Definition, error) {
	s := StepAt(d, path)
	if s == nil || s.Agent == nil || s.Agent.Name != "" {
		return nil, fmt.Errorf("%w: step %q has no inline agent", ErrPosition, path)
	}
	name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "~")
	return d.Inline(name, s.Agent), nil
}

// root returns the list of the outermost frame: the beginning of the tree or branch, or, while
// compensation runs, the compensation of the last step in Undo.
func (in *interpreter) root() (stepList, error) {
	list, err := in.rootOfBranch()
	if err != nil || in.position.Undoing == nil {
		return list, err
	}
	branchPath := list.path
	// Another branch has done the steps that this one compensates: their paths are below that
	// branch.
	if in.position.compensatesBranch() {
		outer := in.position.Branch[len(in.position.Branch)-1].Path
		branchPath = strings.TrimSuffix(outer, undoMark) + strings.TrimPrefix(branchPath, outer)
	}
	return in.compensationRoot(branchPath)
}

// rootOfBranch returns the list with which the tree or the position's branch begins. A branch of a
// map has all steps of the map, a branch of parallel has one step.
func (in *interpreter) rootOfBranch() (stepList, error) {
	if len(in.position.Branch) == 0 {
		return stepList{steps: in.definition.Steps}, nil
	}
	ref := in.position.Branch[len(in.position.Branch)-1]
	switch s := StepAt(in.definition, ref.Path); {
	case s != nil && s.Map != nil && ref.Index >= 0:
		return stepList{steps: s.Map.Steps, path: ref.Path + "/" + strconv.Itoa(ref.Index)}, nil
	case s != nil && s.Parallel != nil && ref.Index >= 0 && ref.Index < len(s.Parallel.Steps):
		return stepList{steps: s.Parallel.Steps[ref.Index : ref.Index+1], path: ref.Path}, nil
	}
	return stepList{}, fmt.Errorf("%w: there is no branch %d of %q", ErrPosition, ref.Index, ref.Path)
}

// compensationRoot returns the compensation of the last finished step as a list of one step. For a
// step whose branches have compensations it is the step itself, which then runs those
// (compensatesBranches). branchPath is that of the branch that finished the step.
func (in *interpreter) compensationRoot(branchPath string) (stepList, error) {
	if len(in.position.Undo) == 0 {
		return stepList{}, nil
	}
	path := in.position.Undo[len(in.position.Undo)-1]
	s := StepAt(in.definition, path)
	if s == nil {
		return stepList{}, fmt.Errorf("%w: there is no step at %q", ErrPosition, path)
	}
	root := agents.Step{Name: s.Name, Parallel: s.Parallel, Map: s.Map}
	if s.Compensate != nil {
		root = *s.Compensate
	}
	return stepList{steps: []agents.Step{root}, path: path, name: nameOf(strings.TrimPrefix(path, branchPath+"/"))}, nil
}

// nameOf returns a path without rounds, tries and marks, as clients see it. Names do not begin with
// a digit.
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

// openSteps returns the open steps, the outermost first, one for each frame. The error is an
// ErrPosition.
func (in *interpreter) openSteps() ([]openStep, error) {
	list, err := in.root()
	if err != nil {
		return nil, err
	}
	isCompensating := in.position.Undoing != nil
	open := make([]openStep, len(in.position.Frames))
	for i := range in.position.Frames {
		f := &in.position.Frames[i]
		if f.At < 0 || f.At >= len(list.steps) {
			return nil, fmt.Errorf("%w: step %d of %d in %q", ErrPosition, f.At, len(list.steps), list.path)
		}
		p := openStep{step: &list.steps[f.At], listLength: len(list.steps), frame: f}
		// The root of a compensation is named after the step that it undoes.
		if isCompensating && i == 0 {
			p.path, p.name = list.path+undoMark, list.name+"/compensate"
		} else {
			p.path, p.name = childPath(list.path, p.step.Name), childPath(list.name, p.step.Name)
		}
		if f.Try > 0 {
			p.path += "~" + strconv.Itoa(f.Try+1)
		}
		open[i] = p
		if i+1 < len(in.position.Frames) {
			if list, err = p.inner(); err != nil {
				return nil, err
			}
		}
	}
	return open, nil
}

// childPath returns the path of a step in another one; "" is the path of the tree.
func childPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// inner returns the list of an open step in which the next frame is: onError steps if the step has
// failed, the chosen case of a route, or the current round of a loop.
func (p openStep) inner() (stepList, error) {
	s, f := p.step, p.frame
	switch {
	// First: the frame of a failed route or loop still has its case or round.
	case f.Failure != nil:
		return stepList{s.OnError.Steps, p.path + errorMark, p.name}, nil
	case s.Steps != nil:
		return stepList{s.Steps, p.path, p.name}, nil
	case f.Case >= 0 && f.Case < len(s.Route):
		return stepList{s.Route[f.Case].Steps, p.path, p.name}, nil
	case s.Loop != nil:
		return stepList{s.Loop.Steps, p.path + "/" + strconv.Itoa(f.Round), p.name}, nil
	}
	return stepList{}, fmt.Errorf("%w: step %q has no inner steps", ErrPosition, p.path)
}

// OpenStepNames returns the names of the open steps at a position, the outermost first, as in
// STEP_STARTED. A run that ends with interrupts closes them, and the run that continues reopens
// them.
func OpenStepNames(d *agents.Definition, position TreePosition) ([]string, error) {
	open, err := (&interpreter{definition: d, position: position}).openSteps()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range open {
		if !p.frame.Waiting { // its last try is closed, and the next one has not begun
			names = append(names, p.name)
		}
	}
	return names, nil
}
