package stream

import (
	"context"
	"encoding/json"
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
	// Superseded tells which messages the run's input took out of the conversation; nil = none.
	Superseded *Superseded `json:"superseded,omitempty"`
	// Cancel is the request that cancelled the run.
	Cancel *Cancel `json:"cancel,omitempty"`
	// Usage is what the run says that it has used, each model once; Estimated is the part of it that is estimated.
	Usage     []agui.TokenUsage `json:"usage,omitempty"`
	Estimated *EstimatedUsage   `json:"estimated,omitempty"`
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
func (f *fold) ended(ctx context.Context, rec *Record, last agui.Event) error {
	if len(f.r.Runs) == 0 {
		return nil
	}
	f.r.Runs = slices.Clone(f.r.Runs) // others hold the list as it was
	run := &f.r.Runs[len(f.r.Runs)-1]
	run.Ended = rec.Time
	run.Outcome, run.Code = outcomeOf(last)
	switch e := last.(type) {
	case *agui.RunFinished:
		f.used(run, e.Usage, e.Metadata)
	case *agui.RunError:
		f.used(run, e.Usage, e.Metadata)
	}
	if run.Outcome != string(agui.OutcomeCancelled) {
		return nil
	}
	var err error
	run.Cancel, err = f.log.cancelUnder(ctx, rec.thread+"."+rec.run+"."+string(LaneControl))
	return err
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

// used notes the usage of a run, and adds it to the thread's.
func (f *fold) used(run *RunNote, more []agui.TokenUsage, metadata agui.Metadata) {
	run.Usage = addUsage(nil, more)
	f.r.Usage = addUsage(f.r.Usage, more)
	if cut := estimatedIn(metadata); cut.Calls > 0 {
		run.Estimated = &cut
		before := EstimatedUsage{}
		if f.r.Estimated != nil {
			before = *f.r.Estimated
		}
		f.r.Estimated = &EstimatedUsage{Calls: before.Calls + cut.Calls, Usage: addUsage(before.Usage, cut.Usage)}
	}
}

// EstimatedUsage is the part of a usage that is estimated: of calls whose answer was cut before the provider reported it.
// The usage includes it.
type EstimatedUsage struct {
	// Calls is how many calls it is of.
	Calls int64 `json:"calls"`
	// Usage has one entry for each provider and model.
	Usage []agui.TokenUsage `json:"usage,omitempty"`
}

// metadataEstimated is the key of an EstimatedUsage in the metadata of a run's last event.
const metadataEstimated = "perdure.usage.estimated"

// Put writes the part into the metadata of a run's last event, if it is of any call.
func (e EstimatedUsage) Put(metadata agui.Metadata) error {
	if e.Calls == 0 {
		return nil
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("stream: encode estimated usage: %w", err)
	}
	metadata[metadataEstimated] = body
	return nil
}

// estimatedIn reads it from the metadata of a run's last event, which this package has written.
func estimatedIn(metadata agui.Metadata) (e EstimatedUsage) {
	if body := metadata[metadataEstimated]; body != nil {
		_ = json.Unmarshal(body, &e)
	}
	return e
}

// addUsage returns the sum by provider and model in a list of its own.
func addUsage(all, more []agui.TokenUsage) []agui.TokenUsage {
	all = slices.Clone(all)
	for _, u := range more {
		at := slices.IndexFunc(all, func(k agui.TokenUsage) bool { return k.Provider == u.Provider && k.Model == u.Model })
		if at < 0 {
			u.Unknown = nil
			all = append(all, u)
			continue
		}
		sum := &all[at]
		if (sum.TotalTokens == nil) != (u.TotalTokens == nil) { // cut calls have none, nor have some providers
			sum.TotalTokens, u.TotalTokens = totalOf(*sum), totalOf(u)
		}
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
	return all
}

// totalOf is the total of an entry, or else the sum of its input and output.
func totalOf(u agui.TokenUsage) *int64 {
	if u.TotalTokens != nil {
		return u.TotalTokens
	}
	return added(u.InputTokens, u.OutputTokens)
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
	// StatusPaused: a run is active, and an operator has paused it. Only the index of threads has this status.
	StatusPaused Status = "paused"
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
