package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// UntilNextAttempt reads until another attempt streams its first event.
func (r *CrashedRun) UntilNextAttempt(t *testing.T) {
	t.Helper()
	r.until(t, "TEXT_MESSAGE_START", "TOOL_CALL_START", "REASONING_MESSAGE_START")
}

// until reads until an event of one of the types.
func (r *CrashedRun) until(t *testing.T, types ...string) {
	t.Helper()
	if r.Client == nil {
		r.Reader.Until(t, func(e Event) bool { return slices.Contains(types, e.Type) })
		return
	}
	for {
		l, err := r.Client.Next(t)
		if err != nil || l.Type == "end" {
			t.Fatalf("client ended: %v %+v, want it to go on", err, l)
		}
		if slices.Contains(types, l.eventType()) {
			return
		}
	}
}

// CrashedText is the text that an attempt repeats until the process is killed.
const CrashedText = "gone:" + Mark + " "

// CrashedRepeats is the number of repetitions. They last for minutes, so that no attempt ends
// before the kill.
const CrashedRepeats = 4000

// RetractWarning is the event type of the warning that clients give when a tool call is retracted.
// A snapshot removes the call before its TOOL_CALL_END, so that clients do not act on truncated
// arguments.
const RetractWarning = agui.EventToolCallEnd

// CrashedRun is a run with two kills: the first two attempts of its model call are killed, the
// third succeeds.
type CrashedRun struct {
	In     Input
	Want   []Message
	Reader *Follower
	Client *ClientProcess // nil = a reader in Go
}

// StartCrashedRun starts a crashed run and follows it.
func StartCrashedRun(t *testing.T, p *Endpoint, kind int) *CrashedRun {
	t.Helper()
	r := NewCrashedRun(t, kind)
	r.Reader = p.Follow(t, r.In)
	return r
}

// NewCrashedRun scripts a crashed run. By kind modulo 4 the attempts are killed in tool call
// arguments (1), reasoning (2) or text.
func NewCrashedRun(t *testing.T, kind int) *CrashedRun {
	t.Helper()
	r := &CrashedRun{In: NewInput(Marked("Slowly, please."))}
	prompt, answer := r.In.Messages[0].Content, LongText(300)
	r.Want = append(slices.Clone(r.In.Messages), AssistantMessage(answer))
	dying := []Fixture{SlowAnswer(strings.Repeat(CrashedText, CrashedRepeats)), SlowAnswer(strings.Repeat(CrashedText, CrashedRepeats))}
	if kind%4 == 1 {
		for i := range dying {
			arguments := `{"` + CrashedText + `":"` + strings.Repeat(CrashedText, CrashedRepeats) + `"}`
			dying[i].Response = Response{ToolCalls: []ModelCall{{Name: "calculate", Arguments: arguments}}}
		}
	}
	if kind%4 == 2 {
		for i := range dying {
			dying[i].Response = Response{Reasoning: strings.Repeat(CrashedText, CrashedRepeats), Content: Marked("Thought over.")}
		}
	}
	SharedModel.AnswerInOrder(t, prompt, append(dying, SlowAnswer(answer))...)
	return r
}

// UntilMidStream reads three more events with text, arguments or reasoning.
func (r *CrashedRun) UntilMidStream(t *testing.T) {
	t.Helper()
	for range 3 {
		r.until(t, "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT")
	}
}

// Finish reads the run to its end and checks its messages: for the live reader, for readers that
// continue after earlier events, and for a reader that starts anew.
func (r *CrashedRun) Finish(t *testing.T, p *Endpoint) {
	t.Helper()
	if n := len(SharedModel.Calls(t, r.In.Messages[0].Content)); n != 3 {
		t.Errorf("%d model calls, want 3", n)
	}
	if r.Client != nil {
		WantMessages(t, r.Want, WithoutEmptyReasoning(r.Client.Finish(t)[0].Messages))
		return
	}
	r.Reader.Finish(t)
	all := r.Reader.Events
	WantMessages(t, r.Want, WithoutEmptyReasoning(ShownMessages(t, r.In.Messages, all, RetractWarning)))
	for i := range all[:len(all)-1] {
		if i%7 != 0 && len(all)-i > 30 {
			continue
		}
		again := p.FollowAfter(t, r.In, all[:i+1])
		again.Finish(t)
		name := fmt.Sprintf("after event %d of %d", i, len(all))
		WantMessages(t, r.Want, WithoutEmptyReasoning(ShownMessages(t, r.In.Messages, again.Events, RetractWarning)))
		if i > lastAttemptStart(all) {
			WantSameEvents(t, name, all, again.Events)
		}
	}
	fresh := p.Run(t, r.In)
	for _, e := range fresh {
		if strings.Contains(string(e.Data), CrashedText) {
			t.Errorf("event of a new reader = %.200s, want no text of a killed attempt", e.Data)
			break
		}
	}
	WantMessages(t, r.Want, ShownMessages(t, r.In.Messages, fresh))
}

// lastAttemptStart returns the index of the last TEXT_MESSAGE_START; 0 = none.
func lastAttemptStart(events []Event) int {
	for i, e := range slices.Backward(events) {
		if e.Type == "TEXT_MESSAGE_START" {
			return i
		}
	}
	return 0
}

// WithoutEmptyReasoning removes empty reasoning messages. Clients keep a retracted reasoning
// message, so Perdure empties it.
func WithoutEmptyReasoning(messages []Message) []Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return m.Role == "reasoning" && m.Content == "" })
}
