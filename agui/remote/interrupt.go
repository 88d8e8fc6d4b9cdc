package remote

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agui"
)

// Interrupt is what a remote run has asked before it ended.
type Interrupt struct {
	// Interrupt is the interrupt in AG-UI's form, with the remote's IDs. For an interrupt of a
	// custom event, Metadata has the event's value under the key "remote".
	Interrupt agui.Interrupt `json:"interrupt"`
	// Event is the value of the custom event that stands for an interrupt in LangGraph, Mastra and
	// CopilotKit; nil = the outcome of RUN_FINISHED has the interrupt.
	Event json.RawMessage `json:"event,omitempty"`
}

// customInterrupts are the names of the custom events that stand for an interrupt. The second one is
// of CopilotKit's SDK for LangGraph.
var customInterrupts = []string{"on_interrupt", "on_copilotkit_interrupt"}

// IsInterrupt reports whether a custom event stands for an interrupt.
func IsInterrupt(e *agui.Custom) bool { return slices.Contains(customInterrupts, e.Name) }

// Interrupts returns the interrupts of the last run in a list of events. Servers that send an
// outcome with interrupts may send the custom events as well, which are then ignored.
func Interrupts(events []agui.Event) []Interrupt {
	var outcome, custom []Interrupt
	for _, e := range events {
		switch e := e.(type) {
		case *agui.RunStarted:
			outcome, custom = nil, nil
		case *agui.Custom:
			if IsInterrupt(e) {
				custom = append(custom, customInterrupt(e, len(custom)+1))
			}
		case *agui.RunFinished:
			if e.Outcome == nil {
				continue
			}
			for _, i := range e.Outcome.Interrupts {
				outcome = append(outcome, Interrupt{Interrupt: i})
			}
		}
	}
	if len(outcome) > 0 {
		return outcome
	}
	return custom
}

// customValue has the members that the values of such events have in various frameworks.
type customValue struct {
	ID, Reason, Message, ToolCallID string
	// RunID and ResumeSchema are Mastra's. The schema is JSON in a string.
	RunID        string
	ResumeSchema string
	// Wrapped is the value that CopilotKit's SDK wraps.
	Wrapped json.RawMessage `json:"__copilotkit_interrupt_value__"`
}

// customInterrupt returns the interrupt of a custom event, the number n of its run.
func customInterrupt(e *agui.Custom, n int) Interrupt {
	plain := unquote(e.Value)
	i := agui.Interrupt{Reason: langGraph, Metadata: agui.Metadata{"remote": plain}}
	var value customValue
	_ = json.Unmarshal(plain, &value) // a value without these members has none of them
	var full agui.Interrupt
	if value.ID != "" && value.Reason != "" && json.Unmarshal(plain, &full) == nil {
		return Interrupt{Interrupt: full, Event: e.Value} // Perdure's own
	}
	var source struct{ ID string } // LangGraph's interrupt
	_ = json.Unmarshal(e.RawEvent, &source)
	i.ID, i.Message, i.ToolCallID = source.ID, value.Message, value.ToolCallID
	switch {
	case value.RunID != "" && value.ToolCallID != "":
		// Mastra uses the same ID in its outcomes.
		i.ID, i.Reason = value.RunID+"::"+value.ToolCallID, "mastra:tool_suspend"
	case i.ID == "":
		i.ID = numbered + strconv.Itoa(n)
	}
	if json.Valid([]byte(value.ResumeSchema)) && value.ResumeSchema[0] == '{' {
		i.ResponseSchema = json.RawMessage(value.ResumeSchema)
	}
	for _, candidate := range []json.RawMessage{value.Wrapped, e.Value} {
		var text string
		if i.Message == "" && json.Unmarshal(candidate, &text) == nil && !isObject(unquote(candidate)) {
			i.Message = text
		}
	}
	return Interrupt{Interrupt: i, Event: e.Value}
}

// takesTable reports whether the remote takes the answer in a table by IDs: LangGraph does so for
// interrupts that have an ID there.
func (i Interrupt) takesTable() bool {
	if i.Event == nil {
		return i.Interrupt.Metadata["langgraph"] != nil
	}
	return i.Interrupt.Reason == langGraph && !strings.HasPrefix(i.Interrupt.ID, numbered)
}

// langGraph is the reason of an interrupt without a reason of its own, as in LangGraph's outcomes.
const langGraph = "langgraph:interrupt"

// numbered begins the ID of an interrupt to which the remote has given none.
const numbered = "interrupt-"

// unquote returns the JSON that a JSON string contains, as frameworks encode values twice. Other
// values are returned unchanged.
func unquote(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) == nil && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return raw
}

// isObject reports whether valid JSON is an object.
func isObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil
}
