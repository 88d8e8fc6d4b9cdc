package docs

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestExamplePayment: the payment example thanks for a payment that arrives while it waits, also after a
// kill, and for one that has arrived before.
func TestExamplePayment(t *testing.T) {
	t.Parallel()
	p := kit.StartExample(t, "payment", "timeout: 1m ", "timeout: 1h ", "for: 10s", "for: 1s")
	pay := func(order, amount string) {
		data := json.RawMessage(`{"orderId": "` + order + `", "amount": ` + amount + `}`)
		resp := p.RequestAs(t, "", http.MethodPost, "/v1/events", data,
			"ce-specversion", "1.0", "ce-id", order, "ce-source", "/shop", "ce-type", "payment.received")
		if resp.StatusCode != http.StatusAccepted {
			t.Fatalf("event: got %s, want %d", resp.Status, http.StatusAccepted)
		}
	}
	wantAnswer := func(f *kit.Follower, want string) {
		t.Helper()
		f.UntilSuccess(t)
		all := p.MessagesOf(t, f.In.ThreadID)
		if got := all[len(all)-1].Content; !strings.HasPrefix(got, want) {
			t.Errorf("answer = %q, want %q", got, want)
		}
	}
	in := kit.NewInput("A-1001")
	p.FollowAgent(t, "/v1/agents/payment/runs", in).UntilInterrupt(t, "perdure:event")
	p.Restart(t)
	pay("A-1001", "70")
	wantAnswer(p.FollowThread(t, in), "I am a script. Thank you for your payment of 70.")

	pay("A-1002", "80")
	early := kit.NewInput("A-1002")
	p.FollowAgent(t, "/v1/agents/payment/runs", early).UntilInterrupt(t, "perdure:event")
	wantAnswer(p.FollowThread(t, early), "I am a script. Thank you for your payment of 80.")

	reminded := kit.NewInput("Remind me to water the plants.")
	p.FollowAgent(t, "/v1/agents/reminder/runs", reminded).UntilInterrupt(t, "perdure:timer")
	wantAnswer(p.FollowThread(t, reminded), "I am a script. It is ")
}
