package stream

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// Ending is how a run ended, read from its terminal record.
type Ending struct {
	// Outcome is "success", "interrupt", "cancelled" or "error"; Code is the code of the error.
	Outcome, Code string
	// Interrupts are those that the run ended with.
	Interrupts []agui.Interrupt
}

// sealing is the result of a terminal record: the agent that has the thread after the run, if a
// handoff has changed it.
type sealing struct {
	Agent string `json:"agent"`
}

// sealedFor returns the agent that has the thread after a terminal record; "" = the agent with
// which the run began.
func (r *Record) sealedFor(ctx context.Context) (string, error) {
	var note sealing
	if !r.HasResult() {
		return "", nil
	}
	err := r.Result(ctx, &note)
	return note.Agent, err
}

// Outcomes of an Ending: RUN_FINISHED without an outcome means endedWell, RUN_ERROR means
// endedFailed.
const (
	endedWell   = "success"
	endedFailed = "error"
)

// End returns the terminal record of a run; nil = it has none.
func (l *Log) End(ctx context.Context, run Run) (*Record, error) {
	rec, err := l.Last(ctx, l.LaneSubject(run, LaneMain))
	if err != nil || rec == nil || rec.Kind != KindTerminal {
		return nil, err
	}
	return rec, nil
}

// Ended reports whether a run has its terminal record.
func (l *Log) Ended(ctx context.Context, run Run) (bool, error) {
	end, err := l.End(ctx, run)
	return end != nil, err
}

// Ending decodes a terminal record. It is decided by the last event.
func (r *Record) Ending(ctx context.Context) (Ending, error) {
	events, err := r.Events(ctx)
	if err != nil {
		return Ending{}, err
	}
	if len(events) == 0 {
		return Ending{}, fmt.Errorf("stream: terminal record %d is empty", r.Seq)
	}
	e, err := agui.Decode(events[len(events)-1])
	if err != nil {
		return Ending{}, err
	}
	switch e := e.(type) {
	case *agui.RunError:
		return Ending{Outcome: endedFailed, Code: e.Code}, nil
	case *agui.RunFinished:
		if e.Outcome != nil {
			return Ending{Outcome: string(e.Outcome.Type), Interrupts: e.Outcome.Interrupts}, nil
		}
	}
	return Ending{Outcome: endedWell}, nil
}
