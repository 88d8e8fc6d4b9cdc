package agui

import (
	"encoding/json"
	"errors"
)

// EventType is the value of an event's member "type".
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

// Event is one AG-UI event. The set is closed: pointers to the event structs of this package
// implement it, and *UnknownEvent for all other events. Events are plain data without locks. A
// shared event must not be changed.
type Event interface {
	// EventType returns the discriminator on the wire.
	EventType() EventType
	// Base returns the members that every event has.
	Base() *BaseEvent

	fielder
}

// BaseEvent contains the members that every event can have.
type BaseEvent struct {
	// Timestamp is in Unix milliseconds; 0 means absent. It does not order events: their position
	// in the stream does.
	Timestamp int64
	// RawEvent is the provider's event that this event was made from; nil means absent.
	RawEvent json.RawMessage
	// Metadata is the producer's open data; nil means absent.
	Metadata Metadata
	// Unknown contains the members that this version of the protocol does not define, so that
	// decoding and encoding again loses nothing.
	Unknown map[string]json.RawMessage
}

// Base implements Event.
func (b *BaseEvent) Base() *BaseEvent { return b }

// errUseCodec is returned by json.Marshal and json.Unmarshal of an event.
var errUseCodec = errors.New("agui: events are encoded by Encode and decoded by Decode")

// MarshalJSON always fails. Every event inherits it. Without it, encoding/json would silently write
// Go field names and no type.
func (b BaseEvent) MarshalJSON() ([]byte, error) { return nil, errUseCodec }

// UnmarshalJSON always fails; see MarshalJSON.
func (b *BaseEvent) UnmarshalJSON([]byte) error { return errUseCodec }

// UnknownEvent is an event of a type that this package does not know. The verifier and the reducer
// ignore it.
type UnknownEvent struct {
	BaseEvent
	// Type is the discriminator on the wire.
	Type EventType
	// JSON is the whole event. Encode writes its members, except that type and the members of
	// BaseEvent are those of the struct.
	JSON json.RawMessage
}

// EventType implements Event.
func (e *UnknownEvent) EventType() EventType { return e.Type }

// visit shows the common members to a visitor. They come after the event's own members on the wire.
func (b *BaseEvent) visit(v visitor) {
	v.timestamp("timestamp", &b.Timestamp)
	v.raw("rawEvent", &b.RawEvent, rawOptional)
	v.metadata("metadata", &b.Metadata)
	v.unknown(&b.Unknown)
}

// isBaseMember reports whether a member is "type" or belongs to BaseEvent.
func isBaseMember(name string) bool {
	return name == "type" || name == "timestamp" || name == "rawEvent" || name == "metadata"
}

// fields shows nothing, because the event's own members are in JSON. The encoder, the decoder and
// the stripper handle unknown events separately.
func (e *UnknownEvent) fields(visitor) {}
