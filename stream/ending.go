package stream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// RunEnding is how a run ended, read from its terminal record.
type RunEnding struct {
	// Outcome is "success", "interrupt", "cancelled" or "error"; Code is the code of the error.
	Outcome, Code string
	// Interrupts are those that the run ended with.
	Interrupts []agui.Interrupt
	// Result is the result of the run, also null; nil = it has none.
	Result json.RawMessage
}

// terminalNote is the result of a terminal record: the agent that has the thread after the run, if
// a handoff has changed it.
type terminalNote struct {
	Agent string `json:"agent"`
}

// terminalNote returns the result of the terminal record; nil = the agent with which the run began
// has the thread.
func (p Place) terminalNote() any {
	if p.Agent == "" {
		return nil
	}
	return terminalNote{p.Agent}
}

// finalAgent returns the agent that has the thread after a terminal record; "" = the agent with
// which the run began.
func (r *Record) finalAgent(ctx context.Context) (string, error) {
	var note terminalNote
	if !r.HasResult() {
		return "", nil
	}
	err := r.Result(ctx, &note)
	return note.Agent, err
}

// Outcomes of a RunEnding: RUN_FINISHED without an outcome means outcomeSuccess, RUN_ERROR means
// outcomeError.
const (
	outcomeSuccess = "success"
	outcomeError   = "error"
)

// TerminalRecord returns the terminal record of a run; nil = it has none.
func (l *Log) TerminalRecord(ctx context.Context, run Run) (*Record, error) {
	rec, err := l.Last(ctx, l.LaneSubject(run, LaneMain))
	if err != nil || rec == nil || rec.Kind != KindTerminal {
		return nil, err
	}
	return rec, nil
}

// HasEnded reports whether a run has its terminal record.
func (l *Log) HasEnded(ctx context.Context, run Run) (bool, error) {
	end, err := l.TerminalRecord(ctx, run)
	return end != nil, err
}

// MetadataNullResult is the key in the metadata of RUN_FINISHED of a run whose result is null, with the
// value true: AG-UI omits a member that is null.
const MetadataNullResult = "perdure.nullResult"

// SetResult sets the result of a run; nil = it has none.
func SetResult(e *agui.RunFinished, result json.RawMessage) {
	if string(result) != "null" {
		e.Result = result
		return
	}
	if e.Metadata == nil {
		e.Metadata = agui.Metadata{}
	}
	e.Metadata[MetadataNullResult] = json.RawMessage("true")
}

// resultOf returns the result that SetResult has set; nil = there is none.
func resultOf(e *agui.RunFinished) json.RawMessage {
	if _, isNull := e.Metadata[MetadataNullResult]; isNull {
		return json.RawMessage("null")
	}
	return e.Result
}

// RunEnding decodes a terminal record. It is decided by the last event.
func (r *Record) RunEnding(ctx context.Context) (RunEnding, error) {
	events, err := r.Events(ctx)
	if err != nil {
		return RunEnding{}, err
	}
	if len(events) == 0 {
		return RunEnding{}, fmt.Errorf("stream: terminal record %d is empty", r.Seq)
	}
	e, err := agui.Decode(events[len(events)-1])
	if err != nil {
		return RunEnding{}, err
	}
	switch e := e.(type) {
	case *agui.RunError:
		return RunEnding{Outcome: outcomeError, Code: e.Code}, nil
	case *agui.RunFinished:
		ending := RunEnding{Outcome: outcomeSuccess, Result: resultOf(e)}
		if e.Outcome != nil {
			ending.Outcome, ending.Interrupts = string(e.Outcome.Type), e.Outcome.Interrupts
		}
		return ending, nil
	}
	return RunEnding{Outcome: outcomeSuccess}, nil
}
