package stream_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestBytesOfTenants: a follower knows the bytes of each tenant, with large contents: those written
// before it has started, those written since, and after a purge and another count those that are
// left.
func TestBytesOfTenants(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	write := func(tenant, id string, size int) {
		t.Helper()
		text := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(markedText(size, id))}
		in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &text}}}}
		must[stream.Proposal](t)(l.ProposeInput(ctx, stream.Run{Thread: stream.Thread{Tenant: tenant, ID: id}, ID: "r"}, [32]byte{1}, in))
	}
	write("acme", "small", 1000)
	write("acme", "large", 300_000)
	write("globex", "small", 5000)
	follower := streamtest.Follow(t, l)
	if _, ok := follower.Bytes("acme"); ok {
		t.Error("bytes before the first count: got them, want none")
	}
	write("acme", "later", 400_000)
	count := func(tenant string) {
		t.Helper()
		if err := follower.CountBytes(ctx, tenant); err != nil {
			t.Fatal(err)
		}
	}
	between := func(tenant string, from, to int64) {
		t.Helper()
		size, ok := follower.Bytes(tenant)
		for size < from && ctx.Err() == nil { // records are delivered soon after they were written
			size, ok = follower.Bytes(tenant)
		}
		if !ok || size > to {
			t.Errorf("bytes of %s: got %d, %t, want %d to %d", tenant, size, ok, from, to)
		}
	}
	count("acme")
	write("globex", "later", 7000)
	between("globex", 12_000, 14_000)
	done := make(chan error, 1)
	go func() { done <- follower.CountBytes(ctx, "globex") }()
	for isCounting := true; isCounting; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			isCounting = false
		default:
		}
		if size, _ := follower.Bytes("globex"); size < 12_000 {
			t.Fatalf("bytes during a count: got %d, want at least those before", size)
		}
	}
	count("acme")
	between("acme", 701_000, 705_000)
	between("none", 0, 0)
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	info := must[jetstream.Stream](t)(js.Stream(ctx, "PERDURE")).CachedInfo()
	acme, _ := follower.Bytes("acme")
	globex, _ := follower.Bytes("globex")
	blobs := int64(700_000)
	if stored := int64(info.State.Bytes); acme+globex < stored+blobs || acme+globex > stored+blobs+2000 {
		t.Errorf("bytes of both tenants: got %d, want %d of the stream and about %d of blobs", acme+globex, stored, blobs)
	}
	if err := l.Purge(ctx, stream.Thread{Tenant: "acme", ID: "large"}); err != nil {
		t.Fatal(err)
	}
	count("acme")
	between("acme", 401_000, 405_000)
	between("globex", 12_000, 14_000)
}
