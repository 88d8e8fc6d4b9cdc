package stream

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// Ending is how a run ended, as its terminal record says.
type Ending struct {
	// Outcome is "success", "interrupt", "cancelled" or "error"; Code is that of the error.
	Outcome, Code string
	// Questions are those that the run asks with its end.
	Questions []agui.Interrupt
}

// sealing is the note of a terminal record: whose the thread is behind the run.
type sealing struct {
	Agent string `json:"agent"`
}

// sealedFor reads whose the thread is behind a terminal record; "" = that agent's with which the run began.
func (r *Record) sealedFor(ctx context.Context) (string, error) {
	var note sealing
	if !r.HasResult() {
		return "", nil
	}
	err := r.Result(ctx, &note)
	return note.Agent, err
}

// The outcomes that AG-UI has no word for.
const (
	endedWell   = "success"
	endedFailed = "error"
)

// End is a run's terminal record; nil = it has none.
func (l *Log) End(ctx context.Context, run Run) (*Record, error) {
	rec, err := l.Last(ctx, l.LaneSubject(run, LaneMain))
	if err != nil || rec == nil || rec.Kind != KindTerminal {
		return nil, err
	}
	return rec, nil
}

// Ended tells whether a run has its terminal record.
func (l *Log) Ended(ctx context.Context, run Run) (bool, error) {
	end, err := l.End(ctx, run)
	return end != nil, err
}

// Ending reads a terminal record.
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
			return Ending{Outcome: string(e.Outcome.Type), Questions: e.Outcome.Interrupts}, nil
		}
	}
	return Ending{Outcome: endedWell}, nil
}
