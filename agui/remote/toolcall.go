package remote

import (
	"slices"

	"github.com/perdure/perdure/agui"
)

// UnansweredCalls returns the calls of tools that the last run in a list of normalized events has
// started and not answered, in order, with their arguments. tools are those of the run's input:
// calls of other tools are the remote's own business. A call for which the run has asked an
// interrupt waits for that instead.
func UnansweredCalls(events []agui.Event, tools []agui.Tool) []agui.ToolCall {
	var started []string
	reducer := agui.NewReducer(nil, nil)
	for _, e := range events {
		switch e := e.(type) {
		case *agui.RunStarted:
			started = nil
		case *agui.ToolCallStart:
			started = append(started, e.ToolCallID)
		}
		_ = reducer.Apply(e) // the stream was verified; a patch that is malformed has no calls
	}
	waits := func(id string) bool {
		return slices.ContainsFunc(Interrupts(events), func(i Interrupt) bool { return i.Interrupt.ToolCallID == id })
	}
	var open []agui.ToolCall
	messages := reducer.Messages()
	for _, m := range messages {
		for _, call := range m.ToolCalls {
			isOffered := slices.ContainsFunc(tools, func(t agui.Tool) bool { return t.Name == call.Name })
			if isOffered && slices.Contains(started, call.ID) && !hasResult(messages, call.ID) && !waits(call.ID) {
				open = append(open, call)
			}
		}
	}
	return open
}

// hasResult reports whether a message is the result of a call.
func hasResult(messages []agui.Message, call string) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return m.Role == agui.RoleTool && m.ToolCallID == call })
}
