package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// arm describes one event type: an arm of the oneof in the envelope.
type arm struct {
	number protowire.Number       // field number in the envelope
	make   func() agui.Event      // returns a new event
	fields func(wire, agui.Event) // shows the fields of the event
}

var (
	// byType and byNumber contain all arms, by event type and by field number. init fills them.
	byType   = make(map[agui.EventType]arm, len(arms))
	byNumber = make(map[protowire.Number]arm, len(arms))
)

func init() {
	for _, a := range arms {
		byType[a.make().EventType()] = a
		byNumber[a.number] = a
	}
}

// event returns the arm of an event type. number is its field number in the envelope, enum its
// value in BaseEvent.type. fields shows its own fields, from number 2 on; field 1 is the BaseEvent.
func event[T any, E interface {
	*T
	agui.Event
}](number protowire.Number, enum int32, fields func(wire, E)) arm {
	return arm{
		number: number,
		make:   func() agui.Event { return E(new(T)) },
		fields: func(w wire, e agui.Event) {
			base(w, e, enum)
			fields(w, e.(E)) // cannot panic: found by the event's type
		},
	}
}

// base shows the BaseEvent. Its type must agree with the arm.
func base(w wire, e agui.Event, enum int32) {
	// The reader finds -1 without a BaseEvent, and the enum's default 0 without a type.
	b, found := e.Base(), int32(-1)
	if !w.reads() {
		found = enum
	}
	w.message(1, true, func(w wire) {
		if w.reads() {
			found = 0
		}
		w.enum(1, &found)
		w.timestamp(2, &b.Timestamp)
		w.value(3, &b.RawEvent)
		w.metadata(4, &b.Metadata)
	})
	if found != enum {
		w.fail(fmt.Errorf("the base event is of type %d, not %d", found, enum))
	}
}

// arms are all event types. A number is never reused.
var arms = []arm{
	event(1, 0, func(w wire, e *agui.TextMessageStart) {
		w.text(2, &e.MessageID)
		w.text(3, (*string)(&e.Role))
		w.text(4, &e.Name)
		w.text(5, &e.SubagentRunID)
	}),
	event(2, 1, func(w wire, e *agui.TextMessageContent) {
		w.text(2, &e.MessageID)
		w.text(3, &e.Delta)
		w.text(4, &e.SubagentRunID)
	}),
	event(3, 2, func(w wire, e *agui.TextMessageEnd) {
		w.text(2, &e.MessageID)
		w.text(3, &e.SubagentRunID)
	}),
	event(4, 3, func(w wire, e *agui.ToolCallStart) {
		w.text(2, &e.ToolCallID)
		w.text(3, &e.ToolCallName)
		w.text(4, &e.ParentMessageID)
		w.text(5, &e.SubagentRunID)
	}),
	event(5, 4, func(w wire, e *agui.ToolCallArgs) {
		w.text(2, &e.ToolCallID)
		w.text(3, &e.Delta)
		w.text(4, &e.SubagentRunID)
	}),
	event(6, 5, func(w wire, e *agui.ToolCallEnd) {
		w.text(2, &e.ToolCallID)
		w.text(3, &e.SubagentRunID)
	}),
	event(7, 6, func(w wire, e *agui.StateSnapshot) {
		required(w, 2, &e.Snapshot)
		w.text(3, &e.SubagentRunID)
	}),
	event(8, 7, func(w wire, e *agui.StateDelta) {
		patch(w, 2, &e.Delta)
		w.text(3, &e.SubagentRunID)
	}),
	event(9, 8, func(w wire, e *agui.MessagesSnapshot) {
		listOf(w, 2, &e.Messages, message)
	}),
	event(10, 9, func(w wire, e *agui.Raw) {
		required(w, 2, &e.Event)
		w.text(3, &e.Source)
		w.text(4, &e.SubagentRunID)
	}),
	event(11, 10, func(w wire, e *agui.Custom) {
		w.text(2, &e.Name)
		required(w, 3, &e.Value)
		w.text(4, &e.SubagentRunID)
	}),
	event(12, 11, runStarted),
	event(13, 12, runFinished),
	event(14, 13, func(w wire, e *agui.RunError) {
		w.text(2, &e.Code)
		w.text(3, &e.Message)
		listOf(w, 4, &e.Usage, usage)
	}),
	event(15, 14, func(w wire, e *agui.StepStarted) {
		w.text(2, &e.StepName)
		w.text(3, &e.SubagentRunID)
	}),
	event(16, 15, func(w wire, e *agui.StepFinished) {
		w.text(2, &e.StepName)
		w.text(3, &e.SubagentRunID)
	}),
	// From here on, the order of the envelope differs from that of the enum.
	event(17, 19, func(w wire, e *agui.TextMessageChunk) {
		w.text(2, &e.MessageID)
		w.text(3, (*string)(&e.Role))
		w.text(4, &e.Delta)
		w.text(5, &e.Name)
		w.text(6, &e.SubagentRunID)
	}),
	event(18, 20, func(w wire, e *agui.ToolCallChunk) {
		w.text(2, &e.ToolCallID)
		w.text(3, &e.ToolCallName)
		w.text(4, &e.ParentMessageID)
		w.text(5, &e.Delta)
		w.text(6, &e.SubagentRunID)
	}),
	event(19, 16, func(w wire, e *agui.SubagentStarted) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.Name)
		w.text(4, &e.Description)
		w.text(5, &e.ParentSubagentRunID)
		w.text(6, &e.ParentToolCallID)
		w.text(7, &e.ParentMessageID)
	}),
	event(20, 17, subagentFinished),
	event(21, 18, func(w wire, e *agui.SubagentError) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.Message)
		w.text(4, &e.Code)
	}),
	event(22, 21, toolCallResult),
	event(23, 22, func(w wire, e *agui.ActivitySnapshot) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
		w.text(4, &e.ActivityType)
		w.object(5, &e.Content)
		w.flag(6, &e.Replace)
	}),
	event(24, 23, func(w wire, e *agui.ActivityDelta) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
		w.text(4, &e.ActivityType)
		patch(w, 5, &e.Patch)
	}),
	event(25, 24, func(w wire, e *agui.ReasoningStart) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
	}),
	event(26, 25, func(w wire, e *agui.ReasoningMessageStart) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
		constant(w, 4, string(agui.RoleReasoning))
	}),
	event(27, 26, func(w wire, e *agui.ReasoningMessageContent) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
		w.text(4, &e.Delta)
	}),
	event(28, 27, func(w wire, e *agui.ReasoningMessageEnd) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
	}),
	event(29, 28, func(w wire, e *agui.ReasoningMessageChunk) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
		w.text(4, &e.Delta)
	}),
	event(30, 29, func(w wire, e *agui.ReasoningEnd) {
		w.text(2, &e.SubagentRunID)
		w.text(3, &e.MessageID)
	}),
	event(31, 30, func(w wire, e *agui.ReasoningEncryptedValue) {
		w.text(2, &e.SubagentRunID)
		w.text(3, (*string)(&e.Subtype))
		w.text(4, &e.EntityID)
		w.text(5, &e.EncryptedValue)
		w.text(6, &e.EncryptedValueType)
	}),
}
