package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A stock WebSocket client follows a run over three sockets and two processes: the first socket is
// cut, the process under the second is killed. What comes satisfies the reference client's own
// check as one stream, and what one socket shows another shows again, as SSE does.
func TestSockets(t *testing.T) {
	t.Parallel()
	p := startPerdure(t)
	in := newInput(say("Slowly, please."))
	answer := long(300)
	sharedModel.attempts(t, in.Messages[0].Content, pours(strings.Repeat(dead, 800)), pours(answer))
	p.threads.use(in.ThreadID)
	type todo struct {
		Addresses string `json:"addresses"`
		Agent     string `json:"agent"`
		Input     input  `json:"input"`
		Cut       int    `json:"cut"`
	}
	client := runNode(t, "ws", "socket.mjs", todo{p.addressFile(), "assistant", in, 6})
	client.until(t, "TEXT_MESSAGE_CONTENT", 10)
	p.kill()
	p.start(t)
	client.until(t, "MESSAGES_SNAPSHOT", 1) // what the dead attempt said is withdrawn
	end, events := client.followed(t)
	if end.Outcome != "resolved" || end.Sockets != 3 {
		t.Errorf("over %d sockets the run was %s: %s", end.Sockets, end.Outcome, end.Error)
	}
	want := append(slices.Clone(in.Messages), says(answer))
	wantMessages(t, want, show(t, in.Messages, events))

	// The client that comes late is cut behind its second event, and sees what SSE shows.
	late := runNode(t, "ws", "socket.mjs", todo{p.addressFile(), "assistant", in, 2})
	_, shown := late.followed(t)
	same(t, "a client that came late", p.run(t, in), shown)

	// Both sockets are still open. The server says that it goes, and does not wait for them to
	// agree.
	if err := p.conclude(t.Context()); err != nil {
		t.Error(err)
	}
	for i, d := range []*driven{client, late} {
		if l, err := d.next(t); err != nil || l.Type != "closed" || l.Code != 1001 {
			t.Errorf("socket %d: %v, %+v, want it closed with 1001", i, err, l)
		}
	}
}

// followed reads what socket.mjs says up to the run's end, and returns that and all its events.
func (d *driven) followed(t *testing.T) (end line, events []event) {
	t.Helper()
	for end.Type != "end" {
		var err error
		if end, err = d.next(t); err != nil {
			t.Fatal(fmt.Errorf("%w\n%s", err, d.complain.String()))
		}
	}
	for _, l := range d.seen {
		if l.Type == "event" {
			events = append(events, event{ID: l.Cursor, Type: l.eventType(), Data: l.Event})
		}
	}
	return end, events
}
