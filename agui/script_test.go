package agui

import (
	"strings"
	"testing"
)

// script writes event streams in short for the tests of order: events are
// separated by ";", each is a verb, an id, and maybe "<parent" and "@owner".
//
//	run fin err          RUN_STARTED, RUN_FINISHED, RUN_ERROR
//	S C E                TEXT_MESSAGE_START, CONTENT, END        (delta = id)
//	TS TA TE TR          TOOL_CALL_START, ARGS, END, RESULT (TR call: message r-call)
//	RS RE                REASONING_START, END
//	RMS RMC RME          REASONING_MESSAGE_START, CONTENT, END
//	ST SF                STEP_STARTED, STEP_FINISHED
//	SA SZ SX             SUBAGENT_STARTED, FINISHED, ERROR
//	AS AD                ACTIVITY_SNAPSHOT, DELTA
//	EV ET                REASONING_ENCRYPTED_VALUE of a message, of a tool call
//	MS                   MESSAGES_SNAPSHOT with one assistant message
//	tc cc rc             TEXT_MESSAGE_, TOOL_CALL_, REASONING_MESSAGE_CHUNK; "-" is no id
//	raw custom snap unk  RAW, CUSTOM, STATE_SNAPSHOT, an unknown event
func script(t *testing.T, s string) []Event {
	t.Helper()
	var events []Event
	for word := range strings.SplitSeq(s, ";") {
		events = append(events, scriptEvent(t, strings.TrimSpace(word)))
	}
	return events
}

// scriptEvent returns the event of a word of a script.
func scriptEvent(t *testing.T, word string) Event {
	t.Helper()
	word, owner, _ := strings.Cut(word, "@")
	word, parent, _ := strings.Cut(word, "<")
	verb, id, _ := strings.Cut(word, " ")
	if id == "-" {
		id = ""
	}
	switch verb {
	case "run":
		return &RunStarted{ThreadID: "t", RunID: "r"}
	case "fin":
		return &RunFinished{ThreadID: "t", RunID: "r"}
	case "err":
		return &RunError{Message: "m"}
	case "S":
		return &TextMessageStart{MessageID: id, SubagentRunID: owner}
	case "C":
		return &TextMessageContent{MessageID: id, Delta: id, SubagentRunID: owner}
	case "E":
		return &TextMessageEnd{MessageID: id, SubagentRunID: owner}
	case "TS":
		return &ToolCallStart{ToolCallID: id, ToolCallName: "f", ParentMessageID: parent, SubagentRunID: owner}
	case "TA":
		return &ToolCallArgs{ToolCallID: id, Delta: id, SubagentRunID: owner}
	case "TE":
		return &ToolCallEnd{ToolCallID: id, SubagentRunID: owner}
	case "TR":
		return &ToolCallResult{MessageID: "r-" + id, ToolCallID: id, Content: TextContent(id), SubagentRunID: owner}
	case "RS":
		return &ReasoningStart{MessageID: id, SubagentRunID: owner}
	case "RE":
		return &ReasoningEnd{MessageID: id, SubagentRunID: owner}
	case "RMS":
		return &ReasoningMessageStart{MessageID: id, SubagentRunID: owner}
	case "RMC":
		return &ReasoningMessageContent{MessageID: id, Delta: id, SubagentRunID: owner}
	case "RME":
		return &ReasoningMessageEnd{MessageID: id, SubagentRunID: owner}
	}
	return scriptRareEvent(t, verb, id, parent, owner)
}

// scriptRareEvent returns an event that scripts use rarely.
func scriptRareEvent(t *testing.T, verb, id, parent, owner string) Event {
	t.Helper()
	switch verb {
	case "ST":
		return &StepStarted{StepName: id, SubagentRunID: owner}
	case "SF":
		return &StepFinished{StepName: id, SubagentRunID: owner}
	case "SA":
		return &SubagentStarted{SubagentRunID: id, Name: "n", ParentSubagentRunID: parent}
	case "SZ":
		return &SubagentFinished{SubagentRunID: id}
	case "SX":
		return &SubagentError{SubagentRunID: id, Message: "m"}
	case "AS":
		return &ActivitySnapshot{MessageID: id, ActivityType: "a", SubagentRunID: owner}
	case "AD":
		return &ActivityDelta{MessageID: id, ActivityType: "a", SubagentRunID: owner}
	case "EV":
		return &ReasoningEncryptedValue{Subtype: EncryptedMessage, EntityID: id, EncryptedValue: "e", SubagentRunID: owner}
	case "ET":
		return &ReasoningEncryptedValue{Subtype: EncryptedToolCall, EntityID: id, EncryptedValue: "e", SubagentRunID: owner}
	case "MS":
		return &MessagesSnapshot{Messages: []Message{{ID: id, Role: RoleAssistant, SubagentRunID: owner}}}
	case "tc":
		return &TextMessageChunk{MessageID: id, Delta: "d", SubagentRunID: owner}
	case "cc":
		return &ToolCallChunk{ToolCallID: id, ToolCallName: parent, Delta: "d", SubagentRunID: owner}
	case "rc":
		return &ReasoningMessageChunk{MessageID: id, Delta: "d", SubagentRunID: owner}
	case "raw":
		return &Raw{}
	case "custom":
		return &Custom{Name: "n", SubagentRunID: owner}
	case "snap":
		return &StateSnapshot{SubagentRunID: owner}
	case "unk":
		return &UnknownEvent{Type: "FUTURE"}
	}
	t.Fatalf("unknown verb %q", verb)
	return nil
}

// transcript returns the reverse of script for what chunks expand to.
func transcript(events []Event) string {
	var words []string
	word := func(verb, id, owner string) {
		if owner != "" {
			owner = "@" + owner
		}
		words = append(words, strings.TrimSpace(verb+" "+id)+owner)
	}
	for _, e := range events {
		switch e := e.(type) {
		case *TextMessageStart:
			word("S", e.MessageID, e.SubagentRunID)
		case *TextMessageContent:
			word("C", e.MessageID, e.SubagentRunID)
		case *TextMessageEnd:
			word("E", e.MessageID, e.SubagentRunID)
		case *ToolCallStart:
			word("TS", e.ToolCallID, e.SubagentRunID)
		case *ToolCallArgs:
			word("TA", e.ToolCallID, e.SubagentRunID)
		case *ToolCallEnd:
			word("TE", e.ToolCallID, e.SubagentRunID)
		case *ReasoningMessageStart:
			word("RMS", e.MessageID, e.SubagentRunID)
		case *ReasoningMessageContent:
			word("RMC", e.MessageID, e.SubagentRunID)
		case *ReasoningMessageEnd:
			word("RME", e.MessageID, e.SubagentRunID)
		default:
			word(string(e.EventType()), "", "")
		}
	}
	return strings.Join(words, "; ")
}
