package agui

import (
	"encoding/json"
	"errors"
)

// EventType is the value of an event's "type" member.
type EventType string

// The 31 event types of protocol 1.0 and 1.1.
const (
	EventRunStarted  EventType = "RUN_STARTED"
	EventRunFinished EventType = "RUN_FINISHED"
	EventRunError    EventType = "RUN_ERROR"

	EventStepStarted  EventType = "STEP_STARTED"
	EventStepFinished EventType = "STEP_FINISHED"

	EventTextMessageStart   EventType = "TEXT_MESSAGE_START"
	EventTextMessageContent EventType = "TEXT_MESSAGE_CONTENT"
	EventTextMessageEnd     EventType = "TEXT_MESSAGE_END"
	EventTextMessageChunk   EventType = "TEXT_MESSAGE_CHUNK"

	EventToolCallStart  EventType = "TOOL_CALL_START"
	EventToolCallArgs   EventType = "TOOL_CALL_ARGS"
	EventToolCallEnd    EventType = "TOOL_CALL_END"
	EventToolCallChunk  EventType = "TOOL_CALL_CHUNK"
	EventToolCallResult EventType = "TOOL_CALL_RESULT"

	EventStateSnapshot    EventType = "STATE_SNAPSHOT"
	EventStateDelta       EventType = "STATE_DELTA"
	EventMessagesSnapshot EventType = "MESSAGES_SNAPSHOT"

	EventActivitySnapshot EventType = "ACTIVITY_SNAPSHOT"
	EventActivityDelta    EventType = "ACTIVITY_DELTA"

	EventReasoningStart          EventType = "REASONING_START"
	EventReasoningEnd            EventType = "REASONING_END"
	EventReasoningMessageStart   EventType = "REASONING_MESSAGE_START"
	EventReasoningMessageContent EventType = "REASONING_MESSAGE_CONTENT"
	EventReasoningMessageEnd     EventType = "REASONING_MESSAGE_END"
	EventReasoningMessageChunk   EventType = "REASONING_MESSAGE_CHUNK"
	EventReasoningEncryptedValue EventType = "REASONING_ENCRYPTED_VALUE"

	EventSubagentStarted  EventType = "SUBAGENT_STARTED"
	EventSubagentFinished EventType = "SUBAGENT_FINISHED"
	EventSubagentError    EventType = "SUBAGENT_ERROR"

	EventRaw    EventType = "RAW"
	EventCustom EventType = "CUSTOM"
)

// Event is one AG-UI event. The set is closed: it is implemented by pointers
// to the event structs of this package, and by *UnknownEvent for everything
// else. Events are plain data without locks; share them read-only.
type Event interface {
	// EventType is the wire discriminator.
	EventType() EventType
	// Base gives access to the members every event has.
	Base() *BaseEvent

	fielder
}

// BaseEvent holds the members that every event may carry.
type BaseEvent struct {
	// Timestamp is in Unix milliseconds; 0 means absent. It orders nothing.
	Timestamp int64
	// RawEvent is the provider's event this one was made from; nil means absent.
	RawEvent json.RawMessage
	// Metadata is open data of the producer; nil means absent.
	Metadata Metadata
	// Unknown holds the members this version does not describe, so that
	// decoding and encoding again loses nothing.
	Unknown map[string]json.RawMessage
}

// Base implements Event.
func (b *BaseEvent) Base() *BaseEvent { return b }

var errUseCodec = errors.New("agui: events are encoded by Encode and decoded by Decode")

// MarshalJSON always fails. Every event inherits it, because encoding/json
// would otherwise write Go field names and no type, and nobody would notice.
func (b BaseEvent) MarshalJSON() ([]byte, error) { return nil, errUseCodec }

// UnmarshalJSON always fails; see MarshalJSON.
func (b *BaseEvent) UnmarshalJSON([]byte) error { return errUseCodec }

// UnknownEvent is an event whose type this package does not know. It is
// carried, not understood: the verifier and the reducer ignore it.
type UnknownEvent struct {
	BaseEvent
	// Type is the wire discriminator.
	Type EventType
	// JSON is the whole event. Encode writes its members, except that type and
	// the members of BaseEvent come from the struct.
	JSON json.RawMessage
}

// EventType implements Event.
func (e *UnknownEvent) EventType() EventType { return e.Type }

// visit shows the members every event has; they follow its own.
func (b *BaseEvent) visit(v visitor) {
	v.timestamp("timestamp", &b.Timestamp)
	v.raw("rawEvent", &b.RawEvent, rawOptional)
	v.metadata("metadata", &b.Metadata)
	v.unknown(&b.Unknown)
}

func isBaseMember(name string) bool {
	return name == "type" || name == "timestamp" || name == "rawEvent" || name == "metadata"
}

// fields shows nothing: what is known about the event stands in JSON.
func (e *UnknownEvent) fields(visitor) {}
