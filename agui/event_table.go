package agui

// newEvent returns a new event of the type, or nil for an unknown type.
func newEvent(t EventType) Event {
	if make, ok := eventTable[t]; ok {
		return make()
	}
	return nil
}

// eventTable contains a constructor for each known event type.
var eventTable = map[EventType]func() Event{
	EventRunStarted:              func() Event { return new(RunStarted) },
	EventRunFinished:             func() Event { return new(RunFinished) },
	EventRunError:                func() Event { return new(RunError) },
	EventStepStarted:             func() Event { return new(StepStarted) },
	EventStepFinished:            func() Event { return new(StepFinished) },
	EventTextMessageStart:        func() Event { return new(TextMessageStart) },
	EventTextMessageContent:      func() Event { return new(TextMessageContent) },
	EventTextMessageEnd:          func() Event { return new(TextMessageEnd) },
	EventTextMessageChunk:        func() Event { return new(TextMessageChunk) },
	EventToolCallStart:           func() Event { return new(ToolCallStart) },
	EventToolCallArgs:            func() Event { return new(ToolCallArgs) },
	EventToolCallEnd:             func() Event { return new(ToolCallEnd) },
	EventToolCallChunk:           func() Event { return new(ToolCallChunk) },
	EventToolCallResult:          func() Event { return new(ToolCallResult) },
	EventStateSnapshot:           func() Event { return new(StateSnapshot) },
	EventStateDelta:              func() Event { return new(StateDelta) },
	EventMessagesSnapshot:        func() Event { return new(MessagesSnapshot) },
	EventActivitySnapshot:        func() Event { return new(ActivitySnapshot) },
	EventActivityDelta:           func() Event { return new(ActivityDelta) },
	EventReasoningStart:          func() Event { return new(ReasoningStart) },
	EventReasoningEnd:            func() Event { return new(ReasoningEnd) },
	EventReasoningMessageStart:   func() Event { return new(ReasoningMessageStart) },
	EventReasoningMessageContent: func() Event { return new(ReasoningMessageContent) },
	EventReasoningMessageEnd:     func() Event { return new(ReasoningMessageEnd) },
	EventReasoningMessageChunk:   func() Event { return new(ReasoningMessageChunk) },
	EventReasoningEncryptedValue: func() Event { return new(ReasoningEncryptedValue) },
	EventSubagentStarted:         func() Event { return new(SubagentStarted) },
	EventSubagentFinished:        func() Event { return new(SubagentFinished) },
	EventSubagentError:           func() Event { return new(SubagentError) },
	EventRaw:                     func() Event { return new(Raw) },
	EventCustom:                  func() Event { return new(Custom) },
}
