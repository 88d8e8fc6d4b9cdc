package stream

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
)

// RunNote is what a thread knows of one of its runs.
type RunNote struct {
	// ID is the run's, as the log has it: with the mark of its segment, if it is not the first.
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Revision is that of the agent.
	Revision string `json:"revision,omitempty"`
	// Continues is the run behind which nobody asked for this one.
	Continues string    `json:"continues,omitempty"`
	Began     time.Time `json:"began"`
	// Ended is zero while the run goes on.
	Ended time.Time `json:"ended,omitzero"`
	// Outcome is success, interrupt, cancelled or, with a code, error; empty while the run goes on.
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
}

// Segment counts the parts of a run, from 1.
func (n RunNote) Segment() int {
	_, number, marked := strings.Cut(n.ID, SegmentMark)
	if !marked {
		return 1
	}
	segment, _ := strconv.Atoi(number) // it is ours
	return segment
}

// OutcomeError is the outcome of a run that ended with RUN_ERROR; the others are AG-UI's.
const OutcomeError = "error"

// began notes a run.
func (f *fold) began(rec *Record, o *Opening) {
	f.r.Active = rec.Time
	f.r.Runs = append(slices.Clip(f.r.Runs), RunNote{
		ID: o.RunID, Agent: o.Agent, Revision: o.Revision, Continues: o.Continues, Began: rec.Time,
	})
}

// ended notes how the last run ended, and adds what it used.
func (f *fold) ended(rec *Record, last agui.Event) {
	if len(f.r.Runs) == 0 {
		return
	}
	f.r.Runs = slices.Clone(f.r.Runs) // others hold the list as it was
	run := &f.r.Runs[len(f.r.Runs)-1]
	run.Ended = rec.Time
	run.Outcome, run.Code = outcomeOf(last)
	switch e := last.(type) {
	case *agui.RunFinished:
		f.used(e.Usage)
	case *agui.RunError:
		f.used(e.Usage)
	}
}

// outcomeOf tells how a run ended by its last event.
func outcomeOf(last agui.Event) (outcome, code string) {
	switch e := last.(type) {
	case *agui.RunFinished:
		if e.Outcome != nil {
			return string(e.Outcome.Type), ""
		}
		return string(agui.OutcomeSuccess), ""
	case *agui.RunError:
		return OutcomeError, e.Code
	}
	return OutcomeError, ""
}

// used adds up by model.
func (f *fold) used(more []agui.TokenUsage) {
	f.r.Usage = slices.Clone(f.r.Usage)
	for _, u := range more {
		at := slices.IndexFunc(f.r.Usage, func(k agui.TokenUsage) bool { return k.Provider == u.Provider && k.Model == u.Model })
		if at < 0 {
			u.Unknown = nil
			f.r.Usage = append(f.r.Usage, u)
			continue
		}
		sum := &f.r.Usage[at]
		for _, count := range []struct{ to, from **int64 }{
			{&sum.InputTokens, &u.InputTokens},
			{&sum.OutputTokens, &u.OutputTokens},
			{&sum.TotalTokens, &u.TotalTokens},
			{&sum.ReasoningTokens, &u.ReasoningTokens},
			{&sum.CachedInputTokens, &u.CachedInputTokens},
			{&sum.CacheWriteInputTokens, &u.CacheWriteInputTokens},
		} {
			*count.to = added(*count.to, *count.from)
		}
	}
}

// added is the sum of two counts, nil = not said.
func added(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	sum := *a + *b
	return &sum
}

// lastEvent is the last of a record's events; nil = there is none.
func (r *Record) lastEvent(ctx context.Context) (agui.Event, error) {
	events, err := r.Events(ctx)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	e, err := agui.Decode(events[len(events)-1])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: %w", r.Seq, err)
	}
	return e, nil
}

// Status is what becomes of a thread if nobody does anything.
type Status string

const (
	// StatusRunning: a run is active. One that is held goes on being active while it waits.
	StatusRunning Status = "running"
	// StatusWaiting: the last run ended with questions, or calls of its client's, that nobody has answered.
	StatusWaiting Status = "waiting"
	// StatusIdle: nothing is under way.
	StatusIdle Status = "idle"
)

// Status tells what the thread is doing.
func (r *Reduction) Status() Status {
	switch {
	case r.Run != "" && !r.Sealed:
		return StatusRunning
	case len(r.Interrupts)+len(r.Waits) > 0:
		return StatusWaiting
	}
	return StatusIdle
}

// statusBehind is the status of a thread whose last run ended with an event.
func statusBehind(last agui.Event) Status {
	if e, ok := last.(*agui.RunFinished); ok && e.Outcome != nil && len(e.Outcome.Interrupts)+len(e.Outcome.PendingToolCallIDs) > 0 {
		return StatusWaiting
	}
	return StatusIdle
}

// Agent is the one that the thread was handed over to, or else that of the last run; of a fork without one, that of
// the run it hangs on.
func (r *Reduction) Agent() string {
	switch {
	case r.Handed != nil:
		return r.Handed.To
	case len(r.Runs) > 0:
		return r.Runs[len(r.Runs)-1].Agent
	case r.Origin != nil:
		return r.Origin.Agent
	}
	return ""
}
