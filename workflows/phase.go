package workflows

import "slices"

// phase is where the thread's AG-UI run is in its life. A run that is held, or is paused, is
// running. docs/internals/architecture.md has the diagram. The zero value is phaseRunning.
type phase int

const (
	phaseRunning phase = iota
	// phaseSuspending: subagents and branches that wait for interrupts end, so that the run can end
	// with these. No decision is taken, since it is open whether this run or the next one continues
	// with it.
	phaseSuspending
	// phaseFinishing: the run's terminal record is being written.
	phaseFinishing
	// phaseFinishingSuspended is phaseFinishing for a run that ends with interrupts of its
	// children. No decision is taken.
	phaseFinishingSuspended
	// phaseEnded: the run is over. The thread waits for decisions about its interrupts, or closes.
	phaseEnded
)

// transitions are the phases that may follow each phase. thread.setPhase checks them.
var transitions = map[phase][]phase{
	phaseRunning:            {phaseSuspending, phaseFinishing},
	phaseSuspending:         {phaseRunning, phaseFinishingSuspended},
	phaseFinishing:          {phaseEnded},
	phaseFinishingSuspended: {phaseEnded},
	// The next run begins in the same execution. A program whose client went on without answers
	// finishes again: the log keeps the first end.
	phaseEnded: {phaseRunning, phaseFinishing},
}

func (p phase) String() string {
	return [...]string{"running", "suspending", "finishing", "finishing suspended", "ended"}[p]
}

// isEnding reports whether the run takes no steering, pause or cancel any more.
func (p phase) isEnding() bool { return p >= phaseFinishing }

// takesDecisions reports whether decisions and tool results are taken; otherwise they wait for the
// next phase.
func (p phase) takesDecisions() bool { return p != phaseSuspending && p != phaseFinishingSuspended }

// mayBecome reports whether another phase may follow.
func (p phase) mayBecome(next phase) bool { return slices.Contains(transitions[p], next) }
