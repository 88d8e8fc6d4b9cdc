package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSockets: a stock WebSocket client follows a run over three sockets and two processes: the
// first socket is cut, and the process of the second is killed. The reference client accepts all
// events as one stream. Another socket, and SSE, show the same events.
func TestSockets(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	in := kit.NewInput(kit.Marked("Slowly, please."))
	answer := kit.LongText(300)
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(strings.Repeat(kit.CrashedText, 800)), kit.SlowAnswer(answer))
	p.Threads.Add(in.ThreadID)
	type todo struct {
		Addresses string    `json:"addresses"`
		Agent     string    `json:"agent"`
		Input     kit.Input `json:"input"`
		Cut       int       `json:"cut"`
	}
	client := kit.StartNode(t, "ws", "socket.mjs", todo{p.AddressFile(), "assistant", in, 6})
	client.Until(t, "TEXT_MESSAGE_CONTENT", 10)
	p.Kill()
	p.Start(t)
	client.Until(t, "MESSAGES_SNAPSHOT", 1) // retracts the killed attempt
	end, events := client.UntilEnd(t)
	if end.Outcome != "resolved" || end.Sockets != 3 {
		t.Errorf("run over %d sockets was %s: %s, want resolved over 3", end.Sockets, end.Outcome, end.Error)
	}
	want := append(slices.Clone(in.Messages), kit.AssistantMessage(answer))
	kit.WantMessages(t, want, kit.ShownMessages(t, in.Messages, events))

	// A later client is cut after its second event and sees what SSE shows.
	late := kit.StartNode(t, "ws", "socket.mjs", todo{p.AddressFile(), "assistant", in, 2})
	_, shown := late.UntilEnd(t)
	kit.WantSameEvents(t, "a client that came late", p.Run(t, in), shown)

	// Both sockets are open. The server sends a close frame and does not wait for the response.
	if err := p.InspectAndStop(t.Context()); err != nil {
		t.Error(err)
	}
	for i, d := range []*kit.ClientProcess{client, late} {
		if l, err := d.Next(t); err != nil || l.Type != "closed" || l.Code != 1001 {
			t.Errorf("socket %d: %v, %+v, want it closed with 1001", i, err, l)
		}
	}
}
