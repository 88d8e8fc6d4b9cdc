package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// A stock WebSocket client follows a run over three sockets and two processes: the first socket is
// cut, the process under the second is killed. What comes satisfies the reference client's own
// check as one stream, and what one socket shows another shows again, as SSE does.
func TestSockets(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	in := kit.NewInput(kit.Say("Slowly, please."))
	answer := kit.Long(300)
	kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(strings.Repeat(kit.Dead, 800)), kit.Pours(answer))
	p.Threads.Use(in.ThreadID)
	type todo struct {
		Addresses string    `json:"addresses"`
		Agent     string    `json:"agent"`
		Input     kit.Input `json:"input"`
		Cut       int       `json:"cut"`
	}
	client := kit.RunNode(t, "ws", "socket.mjs", todo{p.AddressFile(), "assistant", in, 6})
	client.Until(t, "TEXT_MESSAGE_CONTENT", 10)
	p.Kill()
	p.Start(t)
	client.Until(t, "MESSAGES_SNAPSHOT", 1) // what the dead attempt said is withdrawn
	end, events := client.Followed(t)
	if end.Outcome != "resolved" || end.Sockets != 3 {
		t.Errorf("over %d sockets the run was %s: %s", end.Sockets, end.Outcome, end.Error)
	}
	want := append(slices.Clone(in.Messages), kit.Says(answer))
	kit.WantMessages(t, want, kit.Show(t, in.Messages, events))

	// The client that comes late is cut behind its second event, and sees what SSE shows.
	late := kit.RunNode(t, "ws", "socket.mjs", todo{p.AddressFile(), "assistant", in, 2})
	_, shown := late.Followed(t)
	kit.Same(t, "a client that came late", p.Run(t, in), shown)

	// Both sockets are still open. The server says that it goes, and does not wait for them to
	// agree.
	if err := p.Conclude(t.Context()); err != nil {
		t.Error(err)
	}
	for i, d := range []*kit.Driven{client, late} {
		if l, err := d.Next(t); err != nil || l.Type != "closed" || l.Code != 1001 {
			t.Errorf("socket %d: %v, %+v, want it closed with 1001", i, err, l)
		}
	}
}
