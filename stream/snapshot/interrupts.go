package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// maxAnswered bounds how many questions of a run are known after they were answered, and decisions: the last ones.
const maxAnswered = 100

// hold notes what a run waits for that goes on afterwards. Branches of a run ask one by one, so that something
// may be open already.
func (f *fold) hold(ctx context.Context, rec *stream.Record) error {
	if rec.HasResult() {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	questions, calls, err := stream.ParseHeld(events)
	if err != nil || len(questions)+len(calls) == 0 {
		return err
	}
	if len(f.r.Interrupts)+len(f.r.Waits) == 0 && len(questions) > 0 && questions[0].SubagentRunID == "" {
		f.r.Answered, f.r.Decided = nil, nil
	}
	f.r.Interrupts = append(slices.Clip(f.r.Interrupts), questions...)
	f.r.Waits = append(slices.Clip(f.r.Waits), calls...)
	return nil
}

// answer notes that something which a run was held for is done.
func (f *fold) answer(d stream.Decided) {
	f.r.Waits = slices.DeleteFunc(slices.Clone(f.r.Waits), func(id string) bool { return id == d.CallID })
	at := slices.IndexFunc(f.r.Interrupts, d.Answers)
	if at >= 0 {
		f.answered(f.r.Interrupts[at])
		f.r.Interrupts = slices.Delete(slices.Clone(f.r.Interrupts), at, at+1)
	}
}

// leave forgets what subagents have asked that end: nobody is going to answer it, and one that was to come back ends with
// the run.
func (f *fold) leave(ctx context.Context, rec *stream.Record) error {
	if len(f.r.Interrupts) == 0 {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	for _, raw := range events {
		if t := agui.TypeOf(raw); t != agui.EventSubagentError && t != agui.EventSubagentFinished {
			continue
		}
		var ended struct {
			ID string `json:"subagentRunId"`
		}
		if err := json.Unmarshal(raw, &ended); err != nil {
			return fmt.Errorf("snapshot: end of a subagent: %w", err)
		}
		f.r.Interrupts = slices.DeleteFunc(slices.Clone(f.r.Interrupts), func(q agui.Interrupt) bool { return q.SubagentRunID == ended.ID })
	}
	return nil
}

// answered keeps a question that is not asked any more.
func (f *fold) answered(q agui.Interrupt) {
	f.r.Answered = append(slices.Clip(f.r.Answered), q)
	f.r.Answered = f.r.Answered[max(0, len(f.r.Answered)-maxAnswered):]
}

// Shows tells whether a thread, as far as it is reduced here, shows that its workflow has accepted a decision: it does
// not wait for it.
func (r *Snapshot) Shows(d *stream.Decision) bool {
	about := stream.Decided{CallID: d.CallID, Question: d.Question}
	return !slices.Contains(r.Waits, d.CallID) && !slices.ContainsFunc(r.Interrupts, about.Answers)
}

// CarriedOut tells whether a thread that shows a client's result has the results of all calls that were made together
// with it. A thread whose last run has ended will get no more of them.
func (r *Snapshot) CarriedOut(d *stream.Decision) bool {
	if !r.Shows(d) {
		return false
	}
	if d.Verdict != stream.VerdictResult || r.Sealed {
		return true
	}
	answered := map[string]bool{}
	var calls []agui.ToolCall
	for _, e := range r.Entries {
		answered[e.Message.ToolCallID] = e.Message.Role == agui.RoleTool
		if slices.ContainsFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == d.CallID }) {
			calls = e.Message.ToolCalls
		}
	}
	return !slices.ContainsFunc(calls, func(c agui.ToolCall) bool { return !answered[c.ID] })
}
