package trace

import (
	"context"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// withdrawal collects what an attempt has streamed, up to a number of bytes.
type withdrawal struct {
	Withdrawn

	text, reasoning strings.Builder
	calls           map[string]int // index of the calls, by ID
	room            int            // bytes that it may still take
}

// take returns the part of a text for which there is room.
func (w *withdrawal) take(text string) string {
	if len(text) > w.room {
		w.Truncated = true
		text = strings.ToValidUTF8(text[:w.room], "")
	}
	w.room -= len(text)
	return text
}

// add adds the events of a record, until the room is used.
func (w *withdrawal) add(ctx context.Context, rec *stream.Record) error {
	events, err := rec.AnswerEvents(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if w.addEvent(e); w.Truncated {
			return nil
		}
	}
	return nil
}

// addEvent adds the content of an event.
func (w *withdrawal) addEvent(e agui.Event) {
	switch e := e.(type) {
	case *agui.TextMessageContent:
		w.text.WriteString(w.take(e.Delta))
	case *agui.ReasoningMessageContent:
		w.reasoning.WriteString(w.take(e.Delta))
	case *agui.ToolCallStart:
		w.calls[e.ToolCallID] = len(w.ToolCalls)
		w.ToolCalls = append(w.ToolCalls, WithdrawnCall{Name: w.take(e.ToolCallName)})
	case *agui.ToolCallArgs:
		if i, ok := w.calls[e.ToolCallID]; ok {
			w.ToolCalls[i].Arguments += w.take(e.Delta)
		}
	}
}

// result returns what was collected; nil = nothing. isCut tells that the attempt has streamed more
// than was added.
func (w *withdrawal) result(isCut bool) *Withdrawn {
	r := w.Withdrawn
	r.Text, r.Reasoning, r.Truncated = w.text.String(), w.reasoning.String(), r.Truncated || isCut
	if r.Text == "" && r.Reasoning == "" && len(r.ToolCalls) == 0 && !r.Truncated {
		return nil
	}
	return &r
}
