package connect_test

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/internal/process/connect"
)

// balancer forwards connections to a server, as a load balancer does, and refuses them once.
type balancer struct {
	net.Listener
	target string

	mu      sync.Mutex
	open    []net.Conn // guarded by mu
	refuses bool       // the next connection is closed; guarded by mu
}

// serve forwards connections until the listener is closed.
func (b *balancer) serve() {
	for {
		client, err := b.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.open = append(b.open, client)
		refuses := b.refuses
		b.refuses = false
		b.mu.Unlock()
		upstream, err := net.Dial("tcp", b.target) //nolint:noctx // immediate
		if err != nil || refuses {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.Close()
		}()
		go func() {
			_, _ = io.Copy(client, upstream)
			_ = client.Close()
		}()
	}
}

// cut closes all connections. It refuses the next one.
func (b *balancer) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = true
	for _, c := range b.open {
		_ = c.Close()
	}
	b.open = nil
}

// TestReconnectsBeforeItCountsAsDead: a process that knows one address of NATS, that of a load
// balancer, loses its connection, and its first attempt fails. It is connected again before NATS has
// refused six probes of other workers, which takes at least 500 ms.
func TestReconnectsBeforeItCountsAsDead(t *testing.T) {
	t.Parallel()
	s := natsServer(t, &server.Options{Port: server.RANDOM_PORT})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: listener, target: s.Addr().String()}
	go b.serve()
	t.Cleanup(func() { _ = b.Close(); b.cut() })
	nc, err := connect.DialNATS(t.Context(), settings("nats://"+listener.Addr().String(), ""), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	lost, back := make(chan time.Time, 1), make(chan time.Time, 1)
	nc.SetDisconnectErrHandler(func(*nats.Conn, error) { lost <- time.Now() })
	nc.SetReconnectHandler(func(*nats.Conn) { back <- time.Now() })
	b.cut()
	const probed = 500 * time.Millisecond
	if took := wait(t, back).Sub(wait(t, lost)); took >= probed {
		t.Errorf("reconnected after %s, want less than %s", took, probed)
	}
}

// wait returns the time at which an event has happened.
func wait(t *testing.T, event <-chan time.Time) time.Time {
	t.Helper()
	select {
	case at := <-event:
		return at
	case <-time.After(time.Minute):
		t.Fatal("the connection is not lost, or does not come back")
		return time.Time{}
	}
}
