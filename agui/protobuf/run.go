package protobuf

import (
	"github.com/perdure/perdure/agui"
)

// runStarted shows the fields of RUN_STARTED. The event messages in this file start with field 2;
// field 1 is the BaseEvent.
func runStarted(w wire, e *agui.RunStarted) {
	w.text(2, &e.ThreadID)
	w.text(3, &e.RunID)
	w.text(4, &e.ParentRunID)
	w.message(5, e.Input != nil, func(w wire) {
		if e.Input == nil {
			e.Input = new(agui.RunAgentInput)
		}
		input(w, e.Input)
	})
	w.text(6, &e.ProtocolVersion)
}

// input shows the fields of RunAgentInput.
func input(w wire, in *agui.RunAgentInput) {
	w.text(1, &in.ThreadID)
	w.text(2, &in.RunID)
	w.text(3, &in.ParentRunID)
	w.value(4, &in.State)
	listOf(w, 5, &in.Messages, message)
	listOf(w, 6, &in.Tools, tool)
	listOf(w, 7, &in.Context, func(w wire, c *agui.Context) {
		w.text(1, &c.Description)
		w.text(2, &c.Value)
	})
	w.value(8, &in.ForwardedProps)
	listOf(w, 9, &in.Resume, func(w wire, r *agui.ResumeEntry) {
		w.text(1, &r.InterruptID)
		w.text(2, (*string)(&r.Status))
		w.value(3, &r.Payload)
		w.metadata(4, &r.Metadata)
	})
	w.text(10, &in.ProtocolVersion)
}

// tool shows the fields of Tool.
func tool(w wire, t *agui.Tool) {
	w.text(1, &t.Name)
	w.text(2, &t.Description)
	w.value(3, &t.Parameters)
	w.metadata(4, &t.Metadata)
}

// runFinished shows the fields of RUN_FINISHED. The members of the outcome are fields of the event
// itself.
func runFinished(w wire, e *agui.RunFinished) {
	var o agui.Outcome
	if e.Outcome != nil {
		o = *e.Outcome
	}
	w.text(2, &e.ThreadID)
	w.text(3, &e.RunID)
	w.value(4, &e.Result)
	w.text(5, (*string)(&o.Type))
	listOf(w, 6, &o.Interrupts, interrupt)
	listOf(w, 7, &e.Usage, usage)
	w.texts(8, &o.PendingToolCallIDs)
	if w.reads() && o.Type != "" {
		e.Outcome = &o
	}
}

// interrupt shows the fields of Interrupt.
func interrupt(w wire, i *agui.Interrupt) {
	w.text(1, &i.ID)
	w.text(2, &i.Reason)
	w.text(3, &i.Message)
	w.text(4, &i.ToolCallID)
	w.value(5, &i.ResponseSchema)
	w.text(6, &i.ExpiresAt)
	w.metadataValue(7, &i.Metadata)
	w.text(8, &i.SubagentRunID)
}

// usage shows the fields of TokenUsage.
func usage(w wire, u *agui.TokenUsage) {
	w.text(1, &u.Provider)
	w.text(2, &u.Model)
	w.count(3, &u.InputTokens)
	w.count(4, &u.OutputTokens)
	w.count(5, &u.TotalTokens)
	w.count(6, &u.ReasoningTokens)
	w.count(7, &u.CachedInputTokens)
	w.count(8, &u.CacheWriteInputTokens)
}

// subagentFinished shows the fields of SUBAGENT_FINISHED. The members of the outcome are fields of
// the event itself.
func subagentFinished(w wire, e *agui.SubagentFinished) {
	var o agui.SubagentOutcome
	if e.Outcome != nil {
		o = *e.Outcome
	}
	w.text(2, &e.SubagentRunID)
	w.value(3, &e.Result)
	w.text(4, (*string)(&o.Type))
	w.texts(5, &o.InterruptIDs)
	if w.reads() && o.Type != "" {
		e.Outcome = &o
	}
}
