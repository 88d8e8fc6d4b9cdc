package remote

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure/agui"
)

// custom returns an event that stands for an interrupt.
func custom(value, raw string) agui.Event {
	e := &agui.Custom{Name: "on_interrupt", Value: json.RawMessage(value)}
	if raw != "" {
		e.RawEvent = json.RawMessage(raw)
	}
	return e
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event               agui.Event
		id, reason, message string
	}{
		"LangGraph, text":   {custom(`"Go on?"`, `{"id":"abc","value":"Go on?"}`), "abc", "langgraph:interrupt", "Go on?"},
		"LangGraph, object": {custom(`"{\"message\":\"Go on?\"}"`, ""), "interrupt-1", "langgraph:interrupt", "Go on?"},
		"CopilotKit":        {custom(`{"__copilotkit_interrupt_value__":"Name?"}`, ""), "interrupt-1", "langgraph:interrupt", "Name?"},
		"Mastra":            {custom(`"{\"type\":\"mastra_suspend\",\"toolCallId\":\"c\",\"runId\":\"r\",\"resumeSchema\":\"{}\"}"`, ""), "r::c", "mastra:tool_suspend", ""},
		"Perdure":           {custom(`"{\"id\":\"i\",\"reason\":\"tool_call\",\"message\":\"Pay?\"}"`, ""), "i", "tool_call", "Pay?"},
	} {
		got := Interrupts([]agui.Event{c.event})
		if len(got) != 1 || got[0].Interrupt.ID != c.id || got[0].Interrupt.Reason != c.reason || got[0].Interrupt.Message != c.message || got[0].Event == nil {
			t.Errorf("%s: got %+v, want %s, %s, %q", name, got, c.id, c.reason, c.message)
		}
	}
	outcome := &agui.RunFinished{Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i"}}}}
	if got := Interrupts([]agui.Event{custom(`"x"`, ""), outcome}); len(got) != 1 || got[0].Interrupt.ID != "i" || got[0].Event != nil {
		t.Errorf("both forms: got %+v, want that of the outcome", got)
	}
}

// langGraphs returns an interrupt of an outcome of LangGraph's adapter.
func langGraphs(id string) Interrupt {
	return Interrupt{Interrupt: agui.Interrupt{ID: id, Reason: "own", Metadata: agui.Metadata{"langgraph": json.RawMessage(`{"raw":"Go on?"}`)}}}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	mastra := Interrupt{Interrupt: agui.Interrupt{Metadata: agui.Metadata{"mastra": json.RawMessage(`{"suspendPayload":{"question":"Book it?"}}`)}}}
	for want, i := range map[string]Interrupt{
		"Go on?":        langGraphs("a"),
		"Book it?":      mastra,
		"Pay?":          {Interrupt: agui.Interrupt{Message: "Pay?"}},
		`{"amount":5}`:  Interrupts([]agui.Event{custom(`"{\"amount\":5}"`, "")})[0],
		"Which room?":   Interrupts([]agui.Event{custom(`{"suspendPayload":"Which room?","runId":"r","toolCallId":"c"}`, "")})[0],
		"":              {},
		"Your name, ok": Interrupts([]agui.Event{custom(`{"__copilotkit_interrupt_value__":{"prompt":"Your name, ok"}}`, "")})[0],
	} {
		if got := i.Question(); got != want {
			t.Errorf("question of %+v = %q, want %q", i, got, want)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	ofOutcome := Interrupt{Interrupt: agui.Interrupt{ID: "a"}}
	first := Interrupts([]agui.Event{custom(`"x"`, `{"id":"a"}`)})[0]
	second := Interrupts([]agui.Event{custom(`"y"`, `{"id":"b"}`)})[0]
	unnamed := Interrupts([]agui.Event{custom(`"z"`, "")})[0]
	yes := func(id string) agui.ResumeEntry {
		return agui.ResumeEntry{InterruptID: id, Status: agui.ResumeResolved, Payload: json.RawMessage(`true`)}
	}
	no := agui.ResumeEntry{InterruptID: "a", Status: agui.ResumeCancelled}
	for name, c := range map[string]struct {
		asked     []Interrupt
		decisions []agui.ResumeEntry
		props     string
		entries   int
	}{
		"outcome":               {[]Interrupt{ofOutcome}, []agui.ResumeEntry{yes("a")}, `{"locale":"de"}`, 1},
		"event":                 {[]Interrupt{first}, []agui.ResumeEntry{yes("a")}, `{"command":{"resume":true,"interruptEvent":"x"},"locale":"de"}`, 0},
		"events":                {[]Interrupt{first, second}, []agui.ResumeEntry{yes("a"), yes("b")}, `{"command":{"resume":{"a":true,"b":true}},"locale":"de"}`, 0},
		"abandoned":             {[]Interrupt{first}, []agui.ResumeEntry{no}, `{"locale":"de"}`, 1},
		"abandoned and decided": {[]Interrupt{first, second}, []agui.ResumeEntry{no, yes("b")}, `{"command":{"resume":{"a":{"__agui_cancelled__":true,"interrupt_id":"a"},"b":true}},"locale":"de"}`, 0},
		"outcome of LangGraph":  {[]Interrupt{langGraphs("a"), langGraphs("b")}, []agui.ResumeEntry{yes("a"), yes("b")}, `{"command":{"resume":{"a":true,"b":true}},"locale":"de"}`, 0},
		"one of LangGraph":      {[]Interrupt{langGraphs("a")}, []agui.ResumeEntry{yes("a")}, `{"locale":"de"}`, 1},
	} {
		got, err := Resume(agui.RunAgentInput{ForwardedProps: json.RawMessage(`{"locale":"de"}`)}, c.asked, c.decisions)
		if err != nil || string(got.ForwardedProps) != c.props || len(got.Resume) != c.entries {
			t.Errorf("%s: got %s, %d entries, %v, want %s, %d", name, got.ForwardedProps, len(got.Resume), err, c.props, c.entries)
		}
	}
	var refused *ResumeError
	for name, c := range map[string]struct {
		asked     []Interrupt
		decisions []agui.ResumeEntry
	}{
		"no decision":   {[]Interrupt{first}, nil},
		"other":         {nil, []agui.ResumeEntry{yes("a")}},
		"without an ID": {[]Interrupt{first, unnamed}, []agui.ResumeEntry{yes("a"), yes("interrupt-1")}},
	} {
		if _, err := Resume(agui.RunAgentInput{}, c.asked, c.decisions); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a ResumeError", name, err)
		}
	}
}
