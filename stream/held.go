package stream

import (
	"encoding/json"
	"fmt"

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

// ParseHeld reads them from the events of an open record.
func ParseHeld(events [][]byte) (questions []agui.Interrupt, calls []string, err error) {
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
