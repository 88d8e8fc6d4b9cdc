package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

func TestReadToEnd(t *testing.T) {
	question := &agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{
		Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i", Reason: "tool_call"}},
	}}
	events := 0
	end, err := readToEnd(strings.NewReader(strings.Join(stream(t, 3, question), "")), func([]byte) error { events++; return nil })
	if err != nil || end.Outcome.Interrupts[0].ID != "i" || events != 6 {
		t.Errorf("end = %+v after %d events, %v, want the interrupt i after 6", end, events, err)
	}
	for what, frames := range map[string][]string{
		"no end":        stream(t, 3),
		"an error":      stream(t, 3, &agui.RunError{Message: "broken"}),
		"more after it": stream(t, 3, finished, &agui.StepFinished{StepName: "late"}),
	} {
		if _, err := readToEnd(strings.NewReader(strings.Join(frames, "")), nil); !errors.Is(err, errRun) {
			t.Errorf("%s: got %v, want %v", what, err, errRun)
		}
	}
	stop := errors.New("enough")
	if _, err := readToEnd(strings.NewReader(strings.Join(stream(t, 3, finished), "")), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of the reader = %v, want %v", err, stop)
	}
}
