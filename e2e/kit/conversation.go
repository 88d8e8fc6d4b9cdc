package kit

import (
	"fmt"
	"testing"
)

// conversation is a thread, run after run, for a client that sends what its user says and leaves
// the rest to the log.
type conversation struct {
	p    *Endpoint
	In   Input
	Had  []Message
	runs int
}

func (p *Endpoint) Converse() *conversation {
	return &conversation{p: p, In: Input{ThreadID: NewThread(), ProtocolVersion: "1.0"}}
}

// Says posts a run in which the user says something, and returns its events.
func (c *conversation) Says(t *testing.T, agent, text string) []Event {
	t.Helper()
	c.runs++
	c.In.RunID = fmt.Sprint("run-", c.runs)
	said := User(Say(text))
	c.In.Messages, c.Had = append(c.In.Messages, said), append(c.Had, said)
	f := c.p.FollowAgent(t, agent, c.In)
	f.Finish(t)
	c.Has(t, f.Events)
	return f.Events
}

// Has takes in what a run has said.
func (c *conversation) Has(t *testing.T, events []Event) {
	t.Helper()
	c.Had = Show(t, c.Had, events)
}

func (c *conversation) Want(t *testing.T, last string) {
	t.Helper()
	if got := c.Had[len(c.Had)-1]; got.Content != last {
		t.Errorf("the last word is %+v, want %q", got, last)
	}
}
