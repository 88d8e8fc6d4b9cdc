package stream_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
)

// network is the way between a client and a server that may be started again, and on which a
// publication, or its acknowledgement, gets lost when a test wants it to.
type network struct {
	mu     sync.Mutex
	server *server.Server
	lose   loss
	lost   int
}

type loss int

const (
	nothing loss = iota
	thePublication
	theAcknowledgement
)

// dial opens a log over the network.
func (n *network) dial(t *testing.T, ctx context.Context) *stream.Log {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(n), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return must[*stream.Log](t)(stream.Open(ctx, nc, stream.Options{}))
}

func (n *network) use(s *server.Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = s
}

// loseNext makes one publication of a record go wrong.
func (n *network) loseNext(what loss) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = what
}

func (n *network) losses() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// InProcessConn implements nats.InProcessConnProvider.
func (n *network) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, err := n.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, network: n}, nil
}

type wire struct {
	net.Conn
	network *network
}

// Write cuts the connection at a record's publication: before the server gets it, or after.
func (w *wire) Write(b []byte) (int, error) {
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
