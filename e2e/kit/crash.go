package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// NextAttempt waits until another attempt says something.
func (r *CrashedRun) NextAttempt(t *testing.T) {
	t.Helper()
	r.Reader.Until(t, func(e Event) bool {
		return slices.Contains([]string{"TEXT_MESSAGE_START", "TOOL_CALL_START", "REASONING_MESSAGE_START"}, e.Type)
	})
}

// Dead is what attempts say that die.
const Dead = "gone:" + Mark + " "

// Lifetime is how often they say it: minutes, so that none comes to its end before it is killed.
const Lifetime = 4000

// Withdrawn is what a client warns about when a tool call is withdrawn: the call goes with a
// snapshot and ends behind it, so that nobody acts on truncated arguments.
const Withdrawn = agui.EventToolCallEnd

// CrashedRun is a run that lives through two kills: two attempts die in the middle, the third is
// good.
type CrashedRun struct {
	In     Input
	Want   []Message
	Reader *Follower
	Client *Driven // nil = a reader in Go
}

// StartCrashedRun starts a run and reads it.
func StartCrashedRun(t *testing.T, p *Endpoint, kind int) *CrashedRun {
	t.Helper()
	r := NewCrashedRun(t, kind)
	r.Reader = p.Follow(t, r.In)
	return r
}

// NewCrashedRun scripts a run that dies in its text, in the arguments of a tool call or in its
// thoughts.
func NewCrashedRun(t *testing.T, kind int) *CrashedRun {
	t.Helper()
	r := &CrashedRun{In: NewInput(Say("Slowly, please."))}
	prompt, answer := r.In.Messages[0].Content, Long(300)
	r.Want = append(slices.Clone(r.In.Messages), Says(answer))
	dying := []Fixture{Pours(strings.Repeat(Dead, Lifetime)), Pours(strings.Repeat(Dead, Lifetime))}
	if kind%4 == 1 {
		for i := range dying {
			arguments := `{"` + Dead + `":"` + strings.Repeat(Dead, Lifetime) + `"}`
			dying[i].Response = Response{ToolCalls: []ModelCall{{Name: "calculate", Arguments: arguments}}}
		}
	}
	if kind%4 == 2 {
		for i := range dying {
			dying[i].Response = Response{Reasoning: strings.Repeat(Dead, Lifetime), Content: Say("Thought over.")}
		}
	}
	SharedModel.Attempts(t, prompt, append(dying, Pours(answer))...)
	return r
}

// MidStream waits until some more of an answer has come: text, arguments or thoughts.
func (r *CrashedRun) MidStream(t *testing.T) {
	t.Helper()
	piece := func(eventType string) bool {
		return slices.Contains([]string{"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"}, eventType)
	}
	for range 3 {
		if r.Client == nil {
			r.Reader.Until(t, func(e Event) bool { return piece(e.Type) })
			continue
		}
		for {
			l, err := r.Client.Next(t)
			if err != nil || l.Type == "end" {
				t.Fatalf("the client ended: %v %+v", err, l)
			}
			if piece(l.eventType()) {
				break
			}
		}
	}
}

func (r *CrashedRun) Finish(t *testing.T, p *Endpoint) {
	t.Helper()
	if n := len(SharedModel.Calls(t, r.In.Messages[0].Content)); n != 3 {
		t.Errorf("%d model calls, want 3", n)
	}
	if r.Client != nil {
		WantMessages(t, r.Want, WithoutEmptied(r.Client.Finish(t)[0].Messages))
		return
	}
	r.Reader.Finish(t)
	all := r.Reader.Events
	WantMessages(t, r.Want, WithoutEmptied(Show(t, r.In.Messages, all, Withdrawn)))
	for i := range all[:len(all)-1] {
		if i%7 != 0 && len(all)-i > 30 {
			continue
		}
		again := p.Behind(t, r.In, all[:i+1])
		again.Finish(t)
		name := fmt.Sprintf("behind event %d of %d", i, len(all))
		WantMessages(t, r.Want, WithoutEmptied(Show(t, r.In.Messages, again.Events, Withdrawn)))
		if i > lastWithdrawal(all) {
			Same(t, name, all, again.Events)
		}
	}
	fresh := p.Run(t, r.In)
	for _, e := range fresh {
		if strings.Contains(string(e.Data), Dead) {
			t.Errorf("a fresh reader is shown what a dead attempt said: %.200s", e.Data)
			break
		}
	}
	WantMessages(t, r.Want, Show(t, r.In.Messages, fresh))
}

// lastWithdrawal returns where the last attempt's own events begin, as far as a reader can tell.
func lastWithdrawal(events []Event) int {
	for i, e := range slices.Backward(events) {
		if e.Type == "TEXT_MESSAGE_START" {
			return i
		}
	}
	return 0
}

// WithoutEmptied drops reasoning that was withdrawn: clients keep such a message, so it is emptied.
func WithoutEmptied(messages []Message) []Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return m.Role == "reasoning" && m.Content == "" })
}
