package stream

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// Place is where in a run a step writes, and which earlier records it must follow. The workflow
// knows these values, and each activity builds the place of its step from its input.
type Place struct {
	Run  Run
	Lane Lane
	// Step is the step's ID: the same for all its attempts, and unique in the run.
	Step string
	// Execution is the Temporal run ID of the execution that began the run. Writers of another
	// execution are refused with ErrOver.
	Execution string
	// After is the sequence of the lane's last record that the workflow knows; 0 = none.
	After uint64
	// Since is the sequence from which the lane belongs to this use: a run uses its lanes again.
	// Records up to Since are of earlier uses. OpenStep and Begin consider it only while After is
	// 0, that is, until the step has written.
	Since uint64
	// Agent is the agent that has the thread after a handoff. Only Seal uses it; "" = the run's own
	// agent.
	Agent string
	// Subagent is the subagentRunId of the events; "" = they belong to the run's own agent.
	Subagent string
	// Hidden leaves the events of messages, reasoning, tool calls and activities out of the log, so
	// that no client sees them. Those of the calls in Result.ShownCalls remain.
	Hidden bool
}

// stepHasWritten reports whether an attempt of the step has written last, the last record of the
// lane, after a write was refused. If not, the step may write after that record. The error is
// ErrOver if another step or execution has written, or if the lane was superseded or sealed. It is
// ErrLogLost if the lane ends before After.
func (p Place) stepHasWritten(last *Record) (bool, error) {
	switch seq := lastSeq(last); {
	case seq == p.After, p.After == 0 && seq <= p.Since:
		return false, nil
	case seq < p.After:
		return false, fmt.Errorf("%w: lane %s of run %q ends at %d, not at %d", ErrLogLost, p.Lane, p.Run.ID, seq, p.After)
	case last.Kind == KindTerminal, last.Kind == KindSupersede, last.Step != p.Step, !last.writtenFor(p.Execution):
		return false, ErrOver
	default:
		return true, nil
	}
}

// encode encodes events as lines, attributed to the place's subagent. It sets that attribute in the
// given events. A hidden place leaves out events; shownCalls are the calls whose events remain.
func (p Place) encode(events []agui.Event, shownCalls []string) ([][]byte, error) {
	lines := make([][]byte, 0, len(events))
	for _, e := range events {
		if p.Hidden && belongsToMessage(e, shownCalls) {
			continue
		}
		agui.Attribute(e, p.Subagent)
		line, err := agui.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("stream: encode %s: %w", e.EventType(), err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// belongsToMessage reports whether an event is part of a message, except for those of some calls.
func belongsToMessage(e agui.Event, exceptCalls []string) bool {
	var call string
	switch e := e.(type) {
	case *agui.TextMessageStart, *agui.TextMessageContent, *agui.TextMessageEnd,
		*agui.ReasoningStart, *agui.ReasoningMessageStart, *agui.ReasoningMessageContent, *agui.ReasoningMessageEnd,
		*agui.ReasoningEnd, *agui.ReasoningEncryptedValue, *agui.ActivitySnapshot, *agui.ActivityDelta, *agui.MessagesSnapshot:
		return true
	case *agui.ToolCallStart:
		call = e.ToolCallID
	case *agui.ToolCallArgs:
		call = e.ToolCallID
	case *agui.ToolCallEnd:
		call = e.ToolCallID
	case *agui.ToolCallResult:
		call = e.ToolCallID
	default:
		return false
	}
	return !slices.Contains(exceptCalls, call)
}
