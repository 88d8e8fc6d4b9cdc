package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// A run that is held does not end with what it waits for; it says so in custom events. They stand in an
// open record, which nobody but a run's own workflow has written.
const (
	// CustomApproval has one question, as an interrupt.
	CustomApproval = "perdure.approval"
	// CustomToolCalls has the ids of the calls that the client is to make.
	CustomToolCalls = "perdure.toolCalls"
)

// HeldEvents tell readers what a run waits for.
func HeldEvents(questions []agui.Interrupt, calls []string) ([]agui.Event, error) {
	var events []agui.Event
	for _, q := range questions {
		value, err := json.Marshal(q)
		if err != nil {
			return nil, fmt.Errorf("stream: encode question: %w", err)
		}
		events = append(events, &agui.Custom{Name: CustomApproval, Value: value})
	}
	if len(calls) == 0 {
		return events, nil
	}
	value, err := json.Marshal(calls)
	if err != nil {
		return nil, fmt.Errorf("stream: encode calls: %w", err)
	}
	return append(events, &agui.Custom{Name: CustomToolCalls, Value: value}), nil
}

// readHeld reads them from the events of an open record.
func readHeld(events [][]byte) (questions []agui.Interrupt, calls []string, err error) {
	for _, raw := range events {
		if agui.TypeOf(raw) != agui.EventCustom {
			continue
		}
		e, err := agui.Decode(raw)
		if err != nil {
			return nil, nil, err
		}
		custom, ok := e.(*agui.Custom)
		switch {
		case ok && custom.Name == CustomApproval:
			var q agui.Interrupt
			if err := json.Unmarshal(custom.Value, &q); err != nil {
				return nil, nil, fmt.Errorf("stream: question: %w", err)
			}
			questions = append(questions, q)
		case ok && custom.Name == CustomToolCalls:
			if err := json.Unmarshal(custom.Value, &calls); err != nil {
				return nil, nil, fmt.Errorf("stream: calls: %w", err)
			}
		}
	}
	return questions, calls, nil
}

// maxAnswered bounds how many questions of a run are known after they were answered, and decisions: the last ones.
const maxAnswered = 100

// hold notes what a run waits for that goes on afterwards. Branches of a run ask one by one, so that something
// may be open already.
func (f *fold) hold(ctx context.Context, rec *Record) error {
	if rec.HasResult() {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	questions, calls, err := readHeld(events)
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
func (f *fold) answer(d Decided) {
	f.r.Waits = slices.DeleteFunc(slices.Clone(f.r.Waits), func(id string) bool { return id == d.CallID })
	at := slices.IndexFunc(f.r.Interrupts, d.answers)
	if at >= 0 {
		f.answered(f.r.Interrupts[at])
		f.r.Interrupts = slices.Delete(slices.Clone(f.r.Interrupts), at, at+1)
	}
}

// leave forgets what subagents have asked that end: nobody is going to answer it, and one that was to come back ends with
// the run.
func (f *fold) leave(ctx context.Context, rec *Record) error {
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
			return fmt.Errorf("stream: end of a subagent: %w", err)
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

// held are the events that tell a joining reader what the run is held for.
func (p *Projection) held(ctx context.Context) ([][]byte, error) {
	if p.terminal {
		return nil, nil
	}
	r, err := p.log.ReduceTo(ctx, p.run.Thread, p.record)
	if err != nil || r.Sealed || r.Run != Token(p.run.ID) {
		return nil, err
	}
	events, err := HeldEvents(r.Interrupts, r.Waits)
	if err != nil {
		return nil, err
	}
	var encoded [][]byte
	for _, e := range events {
		raw, err := agui.Encode(e)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, raw)
	}
	return encoded, nil
}
