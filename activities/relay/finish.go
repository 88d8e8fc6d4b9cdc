package relay

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// ClosingEvents returns the events that the attempt has refused, and those that close what a cancelled run has
// left open. The caller writes them with the done record.
func (r *Relay) ClosingEvents() []agui.Event {
	events := r.unsent
	for _, item := range slices.Backward(r.verifier.Open()) {
		if end := endOf(item); end != nil {
			events = append(events, end)
		}
	}
	return events
}

// endOf returns the event that closes an item.
func endOf(item agui.OpenItem) agui.Event {
	switch item.Type {
	case agui.EventTextMessageStart:
		return &agui.TextMessageEnd{MessageID: item.ID, SubagentRunID: item.SubagentRunID}
	case agui.EventToolCallStart:
		return &agui.ToolCallEnd{ToolCallID: item.ID, SubagentRunID: item.SubagentRunID}
	case agui.EventReasoningStart:
		return &agui.ReasoningEnd{MessageID: item.ID, SubagentRunID: item.SubagentRunID}
	case agui.EventReasoningMessageStart:
		return &agui.ReasoningMessageEnd{MessageID: item.ID, SubagentRunID: item.SubagentRunID}
	case agui.EventStepStarted:
		return &agui.StepFinished{StepName: item.ID, SubagentRunID: item.SubagentRunID}
	case agui.EventSubagentStarted:
		return &agui.SubagentFinished{SubagentRunID: item.ID}
	}
	return nil
}

// Answer is a decision of people that is the result of a call of an earlier run.
type Answer struct {
	CallID  string // the thread's ID
	Content string
}

// AddAnswers adds a result for each call to which the remote has none. Call it when the run has finished.
func (r *Relay) AddAnswers(ctx context.Context, answers []Answer) error {
	for _, a := range answers {
		if hasResult(r.reducer.Messages(), a.CallID) {
			continue
		}
		result := &agui.ToolCallResult{MessageID: r.run.Identify("res", a.CallID), ToolCallID: a.CallID, Content: agui.TextContent(a.Content)}
		r.answers = append(r.answers, result.MessageID)
		if err := r.emit(ctx, result); err != nil {
			return err
		}
	}
	return nil
}

// Messages returns the messages of the run, as the done record has them: the content of an activity is in
// its events, and answers are next to their calls, before all others.
func (r *Relay) Messages() []agui.Message {
	messages := r.reducer.Messages()
	slices.SortStableFunc(messages, func(a, b agui.Message) int {
		isAnswer := func(m agui.Message) int {
			if slices.Contains(r.answers, m.ID) {
				return 0
			}
			return 1
		}
		return isAnswer(a) - isAnswer(b)
	})
	for i, m := range messages {
		if m.Role == agui.RoleActivity {
			messages[i] = agui.Message{ID: m.ID, Role: agui.RoleActivity, Content: agui.ObjectContent([]byte("{}"))}
		}
	}
	return messages
}

// ChangedIDs returns the IDs by which the remote knows messages of the run, if it has sent them with others
// before, by the thread's IDs.
func (r *Relay) ChangedIDs() map[string]string { return r.changed }

// ClientCalls returns the calls of the client's tools that the run has left without a result, and the
// ID of their message. A run whose calls are in several messages leaves those of the last one. A call
// for which the run has asked an interrupt waits for that instead.
func (r *Relay) ClientCalls() (messageID string, calls []agui.ToolCall) {
	messages := r.reducer.Messages()
	for _, m := range slices.Backward(messages) {
		for _, call := range m.ToolCalls {
			if r.waitsForClient(messages, call) {
				calls = append(calls, call)
			}
		}
		if len(calls) > 0 {
			return m.ID, calls
		}
	}
	return "", nil
}

// waitsForClient reports whether a call is one of the client's, and has no result.
func (r *Relay) waitsForClient(messages []agui.Message, call agui.ToolCall) bool {
	isOffered := slices.ContainsFunc(r.tools, func(t agui.Tool) bool { return t.Name == call.Name })
	isAsked := slices.ContainsFunc(r.Interrupts(), func(i remote.Interrupt) bool {
		return i.Interrupt.ToolCallID != "" && r.OwnID(i.Interrupt.ToolCallID) == call.ID
	})
	return isOffered && slices.Contains(r.started, call.ID) && !hasResult(messages, call.ID) && !isAsked
}

// AnswerID returns the ID of the run's last message with text; "" = there is none.
func (r *Relay) AnswerID() string {
	for _, m := range slices.Backward(r.reducer.Messages()) {
		if m.Role == agui.RoleAssistant && m.SubagentRunID == "" && m.Content.Text() != "" {
			return m.ID
		}
	}
	return ""
}
