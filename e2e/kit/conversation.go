package kit

import (
	"fmt"
	"testing"
)

// conversation is a thread whose client sends the user's messages only, and leaves the rest of the
// conversation to the log.
type conversation struct {
	p        *Endpoint
	In       Input
	Messages []Message
	runs     int
}

// NewConversation returns a conversation on a new thread.
func (p *Endpoint) NewConversation() *conversation {
	return &conversation{p: p, In: Input{ThreadID: NewThread(), ProtocolVersion: "1.0"}}
}

// Send runs an agent with one more user message, and returns the events.
func (c *conversation) Send(t *testing.T, agent, text string) []Event {
	t.Helper()
	c.runs++
	c.In.RunID = fmt.Sprint("run-", c.runs)
	said := UserMessage(Marked(text))
	c.In.Messages, c.Messages = append(c.In.Messages, said), append(c.Messages, said)
	f := c.p.FollowAgent(t, agent, c.In)
	f.Finish(t)
	c.Apply(t, f.Events)
	return f.Events
}

// Apply adds the messages of a run's events to the conversation.
func (c *conversation) Apply(t *testing.T, events []Event) {
	t.Helper()
	c.Messages = ShownMessages(t, c.Messages, events)
}

// WantLast checks the content of the last message.
func (c *conversation) WantLast(t *testing.T, last string) {
	t.Helper()
	if got := c.Messages[len(c.Messages)-1]; got.Content != last {
		t.Errorf("the last message is %+v, want %q", got, last)
	}
}
