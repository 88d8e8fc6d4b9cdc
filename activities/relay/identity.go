package relay

import (
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// identity maps the IDs of the remote to those of the thread. An item that the run begins is a new one,
// whatever its ID: some servers number the messages of each run from 1. All other events name an item
// of this run, or else of an earlier one.
type identity struct {
	agent, run string
	begun      map[string]string // thread's IDs of the items of this run, by the remote's
	known      map[string]string // of the items of earlier runs
	// unanswered are the remote's IDs of calls of earlier runs without a result: LangGraph announces
	// such a call again when it makes it after an interrupt.
	unanswered []string
}

// newIdentity returns the IDs of a run before its first event.
func newIdentity(request Request) identity {
	i := identity{
		agent: request.Agent, run: request.Run.ID,
		begun: map[string]string{}, known: remote.KnownIDs(request.Agent, request.IDs),
	}
	for _, m := range request.Input.Messages {
		for _, c := range m.ToolCalls {
			hasResult := slices.ContainsFunc(request.Input.Messages, func(m agui.Message) bool { return m.Role == agui.RoleTool && m.ToolCallID == c.ID })
			if !hasResult {
				i.unanswered = append(i.unanswered, c.ID)
			}
		}
	}
	return i
}

// OwnID returns the thread's ID of an item that the remote names.
func (i *identity) OwnID(id string) string {
	if own, ok := i.begun[id]; ok {
		return own
	}
	if own, ok := i.known[id]; ok {
		return own
	}
	return remote.NewID(i.agent, i.run, id)
}

// isOfEarlierRun reports whether an event or message names an item of an earlier run.
func (i *identity) isOfEarlierRun(id string) bool { return i.begun[id] == "" && i.known[id] != "" }

// begin notes the items that an event begins, and reports whether it begins a message.
func (i *identity) begin(e agui.Event) (isMessage bool) {
	switch e := e.(type) {
	case *agui.TextMessageStart:
		return i.add(e.MessageID)
	case *agui.ReasoningStart:
		return i.add(e.MessageID)
	case *agui.ReasoningMessageStart:
		return i.add(e.MessageID)
	case *agui.ToolCallResult:
		return i.add(e.MessageID)
	case *agui.ToolCallStart:
		i.add(e.ToolCallID)
		i.add(e.ParentMessageID)
		return true
	case *agui.SubagentStarted:
		i.add(e.SubagentRunID)
	}
	return false
}

// add notes an item of the run. It returns true.
func (i *identity) add(id string) bool {
	if id != "" {
		i.begun[id] = remote.NewID(i.agent, i.run, id)
	}
	return true
}

// isRepetition reports whether an event announces a call of an earlier run again.
func (i *identity) isRepetition(e agui.Event) bool {
	id := ""
	switch e := e.(type) {
	case *agui.ToolCallStart:
		id = e.ToolCallID
	case *agui.ToolCallArgs:
		id = e.ToolCallID
	case *agui.ToolCallEnd:
		id = e.ToolCallID
	}
	return id != "" && i.begun[id] == "" && slices.Contains(i.unanswered, id)
}
