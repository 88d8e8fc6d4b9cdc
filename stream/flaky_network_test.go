package stream_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// flakyNetwork connects a client to a server that may restart. On request it loses a publication or
// its acknowledgement, or places new consumers on a dead node.
type flakyNetwork struct {
	mu     sync.Mutex
	server *server.Server
	conn   net.Conn // the last connection
	lose   loss
	lost   int
	// dead is the number of further consumers, by name, that go to the dead node. buried are the
	// consumers on it: requests for them are not answered.
	dead   int
	buried map[string]bool
	given  chan struct{}
}

type loss int

const (
	nothing loss = iota
	thePublication
	theAcknowledgement
)

// dial opens a log over the network.
func (n *flakyNetwork) dial(t *testing.T, ctx context.Context) *stream.Log {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(n), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return must[*stream.Log](t)(stream.Open(ctx, nc, stream.Options{}))
}

// use connects new connections to a server.
func (n *flakyNetwork) use(s *server.Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = s
}

// loseNext loses the next publication of a record, or its acknowledgement.
func (n *flakyNetwork) loseNext(what loss) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = what
}

// losses returns the number of losses.
func (n *flakyNetwork) losses() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// awaitReconnect waits until the client has a new connection for each one that was cut.
func (n *flakyNetwork) awaitReconnect(t *testing.T, nc *nats.Conn) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for nc.Stats().Reconnects < uint64(n.losses()) || !nc.IsConnected() { //nolint:gosec // never negative
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("the client does not reconnect")
		}
	}
}

// routeToDeadNode places the next consumers on a node that never answers, like a cluster that has
// not noticed the node's death. It then cuts the connection, so that the client creates a consumer.
// given is closed after the first one.
func (n *flakyNetwork) routeToDeadNode(t *testing.T, consumers int) (given <-chan struct{}) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	nc := streamtest.Connect(t, n.server)
	must[*nats.Subscription](t)(nc.Subscribe(unanswered+">", func(*nats.Msg) {})) // without a subscriber NATS would answer that there are no responders
	n.dead, n.buried, n.given = consumers, map[string]bool{}, make(chan struct{})
	if err := errors.Join(nc.Flush(), n.conn.Close()); err != nil {
		t.Fatal(err)
	}
	return n.given
}

// The subject of requests for consumers, and the subject that replaces it if a request is not to be
// answered.
const (
	asked      = "$JS.API.CONSUMER.CREATE.PERDURE."
	unanswered = "NO.BODY.CONSUMER.CREATE.PERDURE." // of the same length
)

// InProcessConn implements nats.InProcessConnProvider.
func (n *flakyNetwork) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, err := n.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	n.conn = &wire{Conn: c, network: n}
	return n.conn, nil
}

type wire struct {
	net.Conn
	network *flakyNetwork
}

// redirect sends requests for a buried consumer to a subject that is not answered.
func (n *flakyNetwork) redirect(b []byte) []byte {
	_, rest, found := bytes.Cut(b, []byte(asked))
	if !found {
		return b
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name := string(rest[:bytes.IndexByte(rest, ' ')])
	if n.dead > 0 && !n.buried[name] {
		n.dead--
		if n.buried[name] = true; len(n.buried) == 1 {
			close(n.given)
		}
	}
	if !n.buried[name] {
		return b
	}
	return bytes.Replace(b, []byte(asked), []byte(unanswered), 1)
}

// Write cuts the connection at the publication of a record, before or after the server receives it.
func (w *wire) Write(b []byte) (int, error) {
	b = w.network.redirect(b)
	lose := nothing
	if bytes.Contains(b, []byte("HPUB perdure.")) {
		w.network.mu.Lock()
		lose, w.network.lose = w.network.lose, nothing
		if lose != nothing {
			w.network.lost++
		}
		w.network.mu.Unlock()
	}
	if lose == thePublication {
		return len(b), w.Close()
	}
	n, err := w.Conn.Write(b)
	if lose == theAcknowledgement {
		_ = w.Close()
	}
	return n, err
}
