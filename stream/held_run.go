package stream

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// A held run stays open while it waits. CUSTOM events in an open record tell readers which
// interrupts and client tool calls it waits for.
const (
	// CustomApproval is the name of an event with one interrupt of whatever kind.
	CustomApproval = "perdure.approval"
	// CustomToolCalls is the name of the event with the IDs of the client tool calls.
	CustomToolCalls = "perdure.toolCalls"
)

// HeldEvents returns the events for the interrupts and the client tool calls of a held
// run.
func HeldEvents(interrupts []agui.Interrupt, calls []string) ([]agui.Event, error) {
	var events []agui.Event
	for _, i := range interrupts {
		value, err := json.Marshal(i)
		if err != nil {
			return nil, fmt.Errorf("stream: encode interrupt: %w", err)
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

// ParseHeld returns the interrupts and the client tool calls from the events of an open record. It
// is the inverse of HeldEvents and ignores other events.
func ParseHeld(events [][]byte) (interrupts []agui.Interrupt, calls []string, err error) {
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
			var i agui.Interrupt
			if err := json.Unmarshal(custom.Value, &i); err != nil {
				return nil, nil, fmt.Errorf("stream: interrupt: %w", err)
			}
			interrupts = append(interrupts, i)
		case ok && custom.Name == CustomToolCalls:
			if err := json.Unmarshal(custom.Value, &calls); err != nil {
				return nil, nil, fmt.Errorf("stream: calls: %w", err)
			}
		}
	}
	return interrupts, calls, nil
}
