package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
func (f *folder) addHeld(ctx context.Context, rec *stream.Record) error {
	if rec.HasResult() {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	interrupts, calls, err := stream.ParseHeld(events)
	if err != nil || len(interrupts)+len(calls) == 0 {
		return err
	}
	if len(f.snap.Interrupts)+len(f.snap.ClientCalls) == 0 && len(interrupts) > 0 && interrupts[0].SubagentRunID == "" {
		f.snap.Answered, f.snap.Decided = nil, nil
	}
	f.snap.Interrupts = append(slices.Clip(f.snap.Interrupts), interrupts...)
	f.snap.ClientCalls = append(slices.Clip(f.snap.ClientCalls), calls...)
	return nil
}

// resolveInterrupt removes the interrupt, or the client tool call, of a decision that was carried
// out.
func (f *folder) resolveInterrupt(d stream.Decided) {
	f.snap.ClientCalls = slices.DeleteFunc(slices.Clone(f.snap.ClientCalls), func(id string) bool { return id == d.CallID })
	at := slices.IndexFunc(f.snap.Interrupts, d.Answers)
	if at >= 0 {
		f.addAnswered(f.snap.Interrupts[at])
		f.snap.Interrupts = slices.Delete(slices.Clone(f.snap.Interrupts), at, at+1)
	}
}

// dropEndedSubagents removes the interrupts of subagents that have ended in a record: no caller can
// resolve them.
func (f *folder) dropEndedSubagents(ctx context.Context, rec *stream.Record) error {
	if len(f.snap.Interrupts) == 0 {
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
		f.snap.Interrupts = slices.DeleteFunc(slices.Clone(f.snap.Interrupts), func(i agui.Interrupt) bool { return i.SubagentRunID == ended.ID })
	}
	return nil
}

// noteRemoteRun notes whether the run of a remote agent has ended with interrupts, which its next run
// answers.
func (f *folder) noteRemoteRun(seq uint64, run *stream.RemoteRun) {
	records := maps.Clone(f.snap.RemoteInterrupts)
	delete(records, run.Thread)
	if len(run.Interrupts) > 0 {
		if records == nil {
			records = map[string]uint64{}
		}
		records[run.Thread] = seq
	}
	f.snap.RemoteInterrupts = records
}

// addAnswered keeps an interrupt that is resolved, for clients that answer it late.
func (f *folder) addAnswered(i agui.Interrupt) {
	f.snap.Answered = append(slices.Clip(f.snap.Answered), i)
	f.snap.Answered = f.snap.Answered[max(0, len(f.snap.Answered)-maxAnswered):]
}

// IsResolved reports whether the thread no longer waits for the interrupt or the client tool call
// of a decision: its workflow has accepted this decision, or another one.
func (s *Snapshot) IsResolved(d *stream.Decision) bool {
	decision := stream.Decided{CallID: d.CallID, Question: d.Question}
	return !slices.Contains(s.ClientCalls, d.CallID) && !slices.ContainsFunc(s.Interrupts, decision.Answers)
}

// CarriedOut reports whether a decision was carried out (see IsResolved). For the result of a
// client tool call all calls of the same message must have results, because only then does the run
// continue. A sealed run gets no more results, so it counts as well.
func (s *Snapshot) CarriedOut(d *stream.Decision) bool {
	if !s.IsResolved(d) {
		return false
	}
	if d.Kind != stream.DecisionToolResult || s.Sealed {
		return true
	}
	answered := map[string]bool{}
	var calls []agui.ToolCall
	for _, e := range s.Entries {
		answered[e.Message.ToolCallID] = e.Message.Role == agui.RoleTool
		if slices.ContainsFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == d.CallID }) {
			calls = e.Message.ToolCalls
		}
	}
	return !slices.ContainsFunc(calls, func(c agui.ToolCall) bool { return !answered[c.ID] })
}
