package events

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/e2e/kit"
)

// connect connects to the NATS server of a process.
func connect(t *testing.T, p *kit.Perdure) jetstream.JetStream {
	t.Helper()
	var addresses struct{ NATS string }
	raw, err := os.ReadFile(p.AddressFile())
	if err == nil {
		err = json.Unmarshal(raw, &addresses)
	}
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(addresses.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestMessageContinuesRun: a message of a JetStream stream continues the run that waits for it, also if
// it is published twice and the process is killed at once.
func TestMessageContinuesRun(t *testing.T) {
	t.Parallel()
	p := setupSources(t, definitions, "- {name: shop, nats: {subject: shop.>, stream: SHOP}}\n")
	js := connect(t, p)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.>"}}); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(kit.WaitTimeout); ; {
		_, err := js.Consumer(t.Context(), "SHOP", "perdure-shop")
		if err == nil {
			break
		}
		if !errors.Is(err, jetstream.ErrConsumerNotFound) || time.Now().After(late) {
			t.Fatalf("consumer: %v", err)
		}
	}
	f, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 1, "timeout": "1h"})
	awaitWait(t, p.Endpoint, f.In.ThreadID)
	for range 2 {
		if _, err := js.Publish(t.Context(), "shop.payments", []byte(paid("p-1", 1))); err != nil {
			t.Fatal(err)
		}
	}
	p.Restart(t)
	f.UntilSuccess(t)
	if s := readState(t, p.Endpoint, f.In); s.Amount != 5 || s.Event != "p-1" {
		t.Errorf("state = %+v, want the amount of the event p-1", s)
	}
	for late := time.Now().Add(kit.WaitTimeout); ; {
		entries := p.StartCommand(t, "audit", "--action", "event.send").Finish(t, 0)
		if strings.Count(entries, "/nats/shop") >= 2 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("audit log:\n%s\nwant an entry of /nats/shop for each message", entries)
		}
	}
}
