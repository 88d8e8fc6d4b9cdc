package archtest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRolesSufficeForEvents: with the deployed permissions of NATS, the API appends events and reads
// waits, and a worker appends events of sources, registers waits, and takes events to them, whichever comes first.
func TestRolesSufficeForEvents(t *testing.T) {
	for _, variable := range []string{"NATS_ADMIN_PASSWORD", "NATS_API_PASSWORD", "NATS_WORKER_PASSWORD"} {
		t.Setenv(variable, "password")
	}
	deployed, err := server.ProcessConfigFile(filepath.Join(root, "deploy", "nats", "roles.conf"))
	if err != nil {
		t.Fatal(err)
	}
	s := streamtest.ServerWith(t, func(o *server.Options) { o.Users = deployed.Users })
	open := func(user string) (*nats.Conn, *stream.Log, *events.Store, *events.Waits) {
		nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(user, "password"), nats.CustomInboxPrefix("_INBOX."+user))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		log, err := stream.Open(t.Context(), nc, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		store, err := events.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		waits, err := store.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(waits.Stop)
		return nc, log, store, waits
	}
	admin, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("perdure-admin", "password"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	acknowledged, err := admin.SubscribeSync("$JS.ACK.PERDURE_events.>")
	if err != nil {
		t.Fatal(err)
	}
	_, _, api, _ := open("perdure-api")
	_, _, worker, waits := open("perdure-worker")

	decided := make(chan string, 2)
	router := events.NewRouter(worker, waits)
	router.OnError = func(err error) { t.Error(err) }
	router.Decide = func(_ context.Context, thread stream.Thread, _ runs.Decision) (runs.DecisionResult, bool, error) {
		decided <- thread.ID
		return runs.DecisionResult{}, true, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); router.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })

	wait := func(thread string) *events.Wait {
		return &events.Wait{
			ID: "int_1", Tenant: "default", ThreadID: thread, RunID: "r", Agent: "a", Kind: stream.WaitEvent, Event: "paid",
			OpenedAt: time.Now(), Until: time.Now().Add(time.Hour), CallID: "c", Number: 1, RunRef: "r",
		}
	}
	if err := worker.Register(t.Context(), wait("first")); err != nil {
		t.Fatal(err)
	}
	e := &events.Event{Content: events.Content{ID: "1", Source: "/shop", Type: "paid", Data: json.RawMessage(`{}`)}, Tenant: "default"}
	if isNew, err := api.Append(t.Context(), e); err != nil || !isNew {
		t.Fatalf("append = %t, %v, want true and no error", isNew, err)
	}
	if thread := <-decided; thread != "first" {
		t.Errorf("decided thread = %q, want %q", thread, "first")
	}
	if _, err := acknowledged.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	fromNATS := &events.Event{Content: events.Content{ID: "1", Source: "/nats/orders", Type: "orders", Data: json.RawMessage(`{}`)}, Tenant: "default"}
	if isNew, err := worker.Append(t.Context(), fromNATS); err != nil || !isNew {
		t.Errorf("append of a worker = %t, %v, want true and no error", isNew, err)
	}
	late := wait("second")
	if err := worker.Register(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := router.FindKept(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if thread := <-decided; thread != "second" {
		t.Errorf("decided thread of the kept event = %q, want %q", thread, "second")
	}
	if err := worker.Unregister(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := api.Purge(t.Context(), stream.Thread{Tenant: "default", ID: "first"}); err != nil {
		t.Fatal(err)
	}
}
