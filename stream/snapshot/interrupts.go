package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// maxAnswered bounds the resolved interrupts, and the decisions, that a snapshot keeps. The oldest
// are dropped.
const maxAnswered = 100

// addHeld adds the interrupts and the client tool calls of a held run, which an open record
// announces. Branches announce theirs one by one, so some may be open already. Interrupts of the
// run's own agent begin a new wait: decisions of the one before are forgotten.
func (f *fold) addHeld(ctx context.Context, rec *stream.Record) error {
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
	if len(f.r.Interrupts)+len(f.r.ClientCalls) == 0 && len(questions) > 0 && questions[0].SubagentRunID == "" {
		f.r.Answered, f.r.Decided = nil, nil
	}
	f.r.Interrupts = append(slices.Clip(f.r.Interrupts), questions...)
	f.r.ClientCalls = append(slices.Clip(f.r.ClientCalls), calls...)
	return nil
}

// resolve removes the interrupt, or the client tool call, of a decision that was carried out.
func (f *fold) resolve(d stream.Decided) {
	f.r.ClientCalls = slices.DeleteFunc(slices.Clone(f.r.ClientCalls), func(id string) bool { return id == d.CallID })
	at := slices.IndexFunc(f.r.Interrupts, d.Answers)
	if at >= 0 {
		f.addAnswered(f.r.Interrupts[at])
		f.r.Interrupts = slices.Delete(slices.Clone(f.r.Interrupts), at, at+1)
	}
}

// dropEndedSubagents removes the interrupts of subagents that have ended in a record: no caller can
// resolve them.
func (f *fold) dropEndedSubagents(ctx context.Context, rec *stream.Record) error {
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

// addAnswered keeps an interrupt that is resolved, for clients that answer it late.
func (f *fold) addAnswered(q agui.Interrupt) {
	f.r.Answered = append(slices.Clip(f.r.Answered), q)
	f.r.Answered = f.r.Answered[max(0, len(f.r.Answered)-maxAnswered):]
}

// Shows reports whether the thread no longer waits for the interrupt or the client tool call of a
// decision: its workflow has accepted this decision, or another one.
func (r *Snapshot) Shows(d *stream.Decision) bool {
	about := stream.Decided{CallID: d.CallID, Question: d.Question}
	return !slices.Contains(r.ClientCalls, d.CallID) && !slices.ContainsFunc(r.Interrupts, about.Answers)
}

// CarriedOut reports whether the thread shows a decision (see Shows). For the result of a client
// tool call all calls of the same message must have results, because only then does the run
// continue. A sealed run gets no more results, so it counts as well.
func (r *Snapshot) CarriedOut(d *stream.Decision) bool {
	if !r.Shows(d) {
		return false
	}
	if d.Kind != stream.DecisionToolResult || r.Sealed {
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
