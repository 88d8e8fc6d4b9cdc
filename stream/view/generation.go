package view

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Downgrade returns an event in a protocol generation, with its type there. Clients from
// before AG-UI 1.0 refuse a whole run if one event has a shape of 1.x. The outcome of the run never
// changes: a cancelled run is no success, so it becomes RUN_ERROR with the code "cancelled". raw is
// not changed.
func Downgrade(p stream.Generation, kind agui.EventType, raw []byte) (agui.EventType, []byte, error) {
	if p != stream.Generation0 {
		return kind, raw, nil
	}
	switch kind {
	case agui.EventRunFinished, agui.EventToolCallResult, agui.EventMessagesSnapshot:
	default:
		return kind, raw, nil
	}
	e, err := agui.Decode(raw)
	if err != nil {
		return kind, nil, err
	}
	e = downgradeEvent(e)
	raw, err = agui.Encode(e)
	return e.EventType(), raw, err
}

// downgradeEvent returns an event in the shape from before AG-UI 1.0. It may change e.
func downgradeEvent(e agui.Event) agui.Event {
	switch e := e.(type) {
	case *agui.RunFinished:
		if e.Outcome == nil {
			return e
		}
		if e.Outcome.Type == agui.OutcomeCancelled {
			return &agui.RunError{BaseEvent: e.BaseEvent, Message: "the run was cancelled", Code: "cancelled", Usage: e.Usage}
		}
		e.Outcome.PendingToolCallIDs = nil
	case *agui.ToolCallResult:
		e.Content = flatten(e.Content)
	case *agui.MessagesSnapshot:
		for i := range e.Messages {
			m := &e.Messages[i]
			if m.Role == agui.RoleTool {
				m.Content = flatten(m.Content)
			} else {
				m.Content = withoutFiles(m.Content)
			}
		}
	}
	return e
}

// withoutFiles leaves out the parts that refer to a provider's file: clients from before AG-UI 1.0
// do not know that kind of source.
func withoutFiles(c agui.Content) agui.Content {
	if c.IsText() || c.IsAbsent() || c.Object() != nil {
		return c
	}
	return agui.PartsContent(slices.DeleteFunc(slices.Clone(c.Parts()), func(p agui.ContentPart) bool {
		return p.Source != nil && p.Source.Type == agui.SourceFile
	}))
}

// flatten replaces the parts of a tool's content by their text: before AG-UI 1.0 it is a string.
func flatten(c agui.Content) agui.Content {
	if c.IsText() || c.IsAbsent() {
		return c
	}
	var text strings.Builder
	for _, part := range c.Parts() {
		text.WriteString(part.Text)
	}
	return agui.TextContent(text.String())
}
