package stream

import (
	"fmt"

	"github.com/perdure/perdure/agui"
)

// sealing is that of a run; nil = the thread is that agent's with which the run began.
func (p Place) sealing() any {
	if p.Agent == "" {
		return nil
	}
	return sealing{p.Agent}
}

// Place is where in a run a step writes.
type Place struct {
	Run  Run
	Lane Lane
	// Step is the step's ID: the same for all its attempts, and unique in the run.
	Step string
	// Then is the ID of the step that the activity of this one continues with; "" = none. Records
	// of that step do not fence a late attempt of this one.
	Then string
	// Execution is the Temporal run ID of the execution that began the run. A run of another
	// execution is not written to.
	Execution string
	// After is the lane's last record as the workflow knows it; 0 = none.
	After uint64
	// Since is the record after which the lane belongs to this use: lanes are used again. It counts
	// until the step has written.
	Since uint64
	// Agent is the agent that has the thread after a handoff; it is set where a run is sealed, "" =
	// the run's own.
	Agent string
	// Subagent is the subagentRunId of the events; "" = they are the run's own agent's.
	Subagent string
}

// judgeLast judges the last record of the lane for a step. begun tells that it is a record of the
// step. The error is ErrOver if another step or execution has written, and ErrLogLost if the record
// After is missing.
func (p Place) judgeLast(last *Record) (begun bool, err error) {
	switch found := lastSeq(last); {
	case found == p.After, p.After == 0 && found <= p.Since:
		return false, nil
	case found < p.After:
		return false, fmt.Errorf("%w: lane %s of run %q ends at %d, not at %d", ErrLogLost, p.Lane, p.Run.ID, found, p.After)
	case last.Kind == KindTerminal, last.Kind == KindSupersede, !p.has(last.Step), !last.writtenFor(p.Execution):
		return false, ErrOver
	default:
		return true, nil
	}
}

func (p Place) has(step string) bool { return step == p.Step || p.Then != "" && step == p.Then }

// encode encodes events, attributed to the place's subagent.
func (p Place) encode(events []agui.Event) ([][]byte, error) {
	lines := make([][]byte, 0, len(events))
	for _, e := range events {
		agui.Attribute(e, p.Subagent)
		line, err := agui.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("stream: encode %s: %w", e.EventType(), err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
