package reference

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// pick returns one of a few values, so that events refer to each other.
func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

func (g *generator) message() string  { return pick(g, "m1", "m2", "m3") }
func (g *generator) activity() string { return pick(g, "a1", "a2", "m1") }
func (g *generator) thought() string  { return pick(g, "r1", "r2") }
func (g *generator) call() string     { return pick(g, "c1", "c2", "c3") }
func (g *generator) owner() string    { return pick(g, "", "", "", "", "", "s1", "s2") }

// base returns random members that all events have.
func (g *generator) base() agui.BaseEvent {
	if g.IntN(4) > 0 {
		return agui.BaseEvent{}
	}
	return agui.BaseEvent{Metadata: agui.Metadata{pick(g, "k1", "k2"): json.RawMessage(pick(g, "1", "null", `{"a":[]}`))}}
}

// event returns a random event that matches the schema.
func (g *generator) event() agui.Event {
	switch g.IntN(10) {
	case 0, 1, 2:
		return g.textEvent()
	case 3, 4:
		return g.callEvent()
	case 5:
		return g.thoughtEvent()
	case 6:
		return g.stateEvent()
	case 7:
		return g.activityEvent()
	case 8:
		return g.ownerEvent()
	default:
		return g.otherEvent()
	}
}

// textEvent returns a random event of a text message.
func (g *generator) textEvent() agui.Event {
	switch g.IntN(7) {
	case 0, 1:
		return &agui.TextMessageStart{BaseEvent: g.base(), MessageID: g.message(), Role: pick(g, "", agui.RoleUser, agui.RoleAssistant), Name: pick(g, "", "n"), SubagentRunID: g.owner()}
	case 2, 3:
		return &agui.TextMessageContent{BaseEvent: g.base(), MessageID: g.message(), Delta: pick(g, "x", "é", ""), SubagentRunID: g.owner()}
	case 4:
		return &agui.TextMessageEnd{BaseEvent: g.base(), MessageID: g.message(), SubagentRunID: g.owner()}
	default:
		return &agui.TextMessageChunk{BaseEvent: g.base(), MessageID: pick(g, "", "", g.message()), Delta: pick(g, "x", ""), Role: pick(g, "", "", agui.RoleUser), SubagentRunID: g.owner()}
	}
}

// callEvent returns a random event of a tool call.
func (g *generator) callEvent() agui.Event {
	switch g.IntN(7) {
	case 0, 1:
		return &agui.ToolCallStart{BaseEvent: g.base(), ToolCallID: g.call(), ToolCallName: pick(g, "f", "f", "f", "h"), ParentMessageID: pick(g, "", g.message(), g.activity(), "p"), SubagentRunID: g.owner()}
	case 2:
		return &agui.ToolCallArgs{BaseEvent: g.base(), ToolCallID: g.call(), Delta: pick(g, "{", "}", ""), SubagentRunID: g.owner()}
	case 3:
		return &agui.ToolCallEnd{BaseEvent: g.base(), ToolCallID: g.call(), SubagentRunID: g.owner()}
	case 4, 5:
		content := pick(g, agui.TextContent("done"), agui.TextContent(""), agui.PartsContent([]agui.ContentPart{agui.TextPart("t")}))
		return &agui.ToolCallResult{BaseEvent: g.base(), MessageID: fmt.Sprint("t", g.IntN(100)), ToolCallID: g.call(), Content: content, SubagentRunID: g.owner()}
	default:
		return &agui.ToolCallChunk{BaseEvent: g.base(), ToolCallID: pick(g, "", g.call()), ToolCallName: pick(g, "", "f"), ParentMessageID: pick(g, "", "", g.message()), Delta: pick(g, "{}", ""), SubagentRunID: g.owner()}
	}
}

// thoughtEvent returns a random event of reasoning.
func (g *generator) thoughtEvent() agui.Event {
	switch g.IntN(7) {
	case 0:
		return &agui.ReasoningStart{BaseEvent: g.base(), MessageID: g.thought(), SubagentRunID: g.owner()}
	case 1:
		return &agui.ReasoningEnd{MessageID: g.thought(), SubagentRunID: g.owner()}
	case 2:
		return &agui.ReasoningMessageStart{BaseEvent: g.base(), MessageID: g.thought(), SubagentRunID: g.owner()}
	case 3:
		return &agui.ReasoningMessageContent{BaseEvent: g.base(), MessageID: g.thought(), Delta: "y", SubagentRunID: g.owner()}
	case 4:
		return &agui.ReasoningMessageEnd{BaseEvent: g.base(), MessageID: g.thought(), SubagentRunID: g.owner()}
	case 5:
		return &agui.ReasoningMessageChunk{BaseEvent: g.base(), MessageID: pick(g, "", g.thought()), Delta: "z", SubagentRunID: g.owner()}
	default:
		subtype := pick(g, agui.EncryptedMessage, agui.EncryptedToolCall)
		return &agui.ReasoningEncryptedValue{Subtype: subtype, EntityID: pick(g, g.message(), g.thought(), g.call()), EncryptedValue: "e", SubagentRunID: g.owner()}
	}
}

// stateEvent returns a random event of the state.
func (g *generator) stateEvent() agui.Event {
	switch g.IntN(5) {
	case 0:
		// The client's patch library accepts operations on a scalar state that cannot be applied.
		return &agui.StateSnapshot{Snapshot: json.RawMessage(pick(g, `{"n":1,"l":[1]}`, `{}`, `[1]`)), SubagentRunID: g.owner()}
	case 1, 2:
		return &agui.StateDelta{Delta: g.patch(), SubagentRunID: g.owner()}
	default:
		return &agui.MessagesSnapshot{Messages: g.messages()}
	}
}

// patch returns a random patch.
func (g *generator) patch() json.RawMessage {
	ops := []json.RawMessage{}
	for range g.IntN(3) {
		ops = append(ops, json.RawMessage(pick(g,
			`{"op":"add","path":"/l/-","value":2}`, `{"op":"replace","path":"/n","value":null}`, `{"op":"remove","path":"/l/0"}`,
			`{"op":"test","path":"/n","value":0}`, `{"op":"copy","from":"/l","path":"/n"}`, `{"op":"move","from":"/n","path":"/m"}`,
			`{"op":"add","path":"/a~1b","value":{"c":[]}}`, `{"op":"replace","path":"","value":{"l":[]}}`, `{"op":"add","path":"/l/1","value":"i"}`)))
	}
	raw, _ := json.Marshal(ops) // the values are valid JSON
	return raw
}

// messages returns random messages.
func (g *generator) messages() []agui.Message {
	list := []agui.Message{}
	seen := map[string]bool{}
	for range g.IntN(4) {
		m := pick(g,
			agui.Message{ID: g.message(), Role: agui.RoleUser, Content: agui.TextContent("s")},
			agui.Message{ID: g.message(), Role: agui.RoleAssistant, Content: agui.TextContent("s"), ToolCalls: []agui.ToolCall{{ID: g.call(), Name: "f", Arguments: "1"}}},
			agui.Message{ID: g.message(), Role: agui.RoleAssistant, SubagentRunID: g.owner()},
			agui.Message{ID: g.thought(), Role: agui.RoleReasoning, Content: agui.TextContent("s")},
			agui.Message{ID: "a1", Role: agui.RoleActivity, ActivityType: "x", Content: agui.ObjectContent(json.RawMessage(`{"s":1}`))})
		if !seen[m.ID] {
			seen[m.ID] = true
			list = append(list, m)
		}
	}
	return list
}

// activityEvent returns a random event of an activity message.
func (g *generator) activityEvent() agui.Event {
	if g.IntN(2) == 0 {
		var replace *bool
		if g.IntN(2) == 0 {
			replace = new(g.IntN(2) == 0)
		}
		return &agui.ActivitySnapshot{BaseEvent: g.base(), MessageID: g.activity(), ActivityType: pick(g, "x", "y"), Content: json.RawMessage(`{"l":[],"n":0}`), Replace: replace, SubagentRunID: g.owner()}
	}
	return &agui.ActivityDelta{BaseEvent: g.base(), MessageID: g.activity(), ActivityType: pick(g, "x", "y"), Patch: json.RawMessage(`[{"op":"add","path":"/l/-","value":1}]`), SubagentRunID: g.owner()}
}

// ownerEvent returns a random event of a subagent.
func (g *generator) ownerEvent() agui.Event {
	id := pick(g, "s1", "s2")
	switch g.IntN(5) {
	case 0, 1:
		return &agui.SubagentStarted{SubagentRunID: id, Name: "n", ParentSubagentRunID: pick(g, "", "", "s1")}
	case 2:
		return &agui.SubagentFinished{SubagentRunID: id}
	case 3:
		return &agui.StepStarted{StepName: pick(g, "p", "q"), SubagentRunID: g.owner()}
	default:
		return &agui.StepFinished{StepName: pick(g, "p", "q"), SubagentRunID: g.owner()}
	}
}

// otherEvent returns a random event of another kind.
func (g *generator) otherEvent() agui.Event {
	switch g.IntN(3) {
	case 0:
		return &agui.Raw{Event: json.RawMessage("null"), SubagentRunID: g.owner()}
	case 1:
		return &agui.Custom{Name: "acme.x", SubagentRunID: g.owner()}
	default:
		return &agui.UnknownEvent{Type: "FUTURE"}
	}
}
