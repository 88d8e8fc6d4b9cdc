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

// network is the way between a client and a server that may be started again. When a test wants it
// to a publication, or its acknowledgement, gets lost, or new consumers are given to a node that is
// dead.
type network struct {
	mu     sync.Mutex
	server *server.Server
	conn   net.Conn // the last one
	lose   loss
	lost   int
	// dead is how many consumers, by their names, go to the dead node from now on; buried are those
	// that have gone there: what is asked for them is never answered.
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

// awaitReconnect waits until the client has a new connection for each one that was cut.
func (n *network) awaitReconnect(t *testing.T, nc *nats.Conn) {
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

// giveToTheDead lets the next consumers be made on a node that never answers, as a cluster does
// that has not noticed its death, and then cuts the connection, so that one has to be made. given
// is closed when the first one has been.
func (n *network) giveToTheDead(t *testing.T, consumers int) (given <-chan struct{}) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	nc := streamtest.Connect(t, n.server)
	must[*nats.Subscription](t)(nc.Subscribe(unanswered+">", func(*nats.Msg) {})) // or there would be an answer: nobody is there
	n.dead, n.buried, n.given = consumers, map[string]bool{}, make(chan struct{})
	if err := errors.Join(nc.Flush(), n.conn.Close()); err != nil {
		t.Fatal(err)
	}
	return n.given
}

// What is asked on, and where it goes instead if it is not to be answered.
const (
	asked      = "$JS.API.CONSUMER.CREATE.PERDURE."
	unanswered = "NO.BODY.CONSUMER.CREATE.PERDURE." // as long
)

// InProcessConn implements nats.InProcessConnProvider.
func (n *network) InProcessConn() (net.Conn, error) {
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
	network *network
}

// redirect sends what is asked for a consumer that is buried where nobody answers.
func (n *network) redirect(b []byte) []byte {
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

// Write cuts the connection at a record's publication: before the server gets it, or after.
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
