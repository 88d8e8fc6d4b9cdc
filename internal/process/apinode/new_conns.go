package apinode

import (
	"net"
	"net/http"
	"sync"
)

// newConns are the connections that have not sent a request yet. Browsers and HTTP clients open
// some in advance. http.Server.Shutdown waits until such a connection is 5 s old, so the node
// closes them itself. It is safe for concurrent use.
type newConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool // new connections are closed at once
}

// trackNewConns returns an empty set, whose track is the ConnState of an http.Server.
func trackNewConns() *newConns { return &newConns{conns: map[net.Conn]struct{}{}} }

// track implements the ConnState of an http.Server.
func (n *newConns) track(c net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(n.conns, c)
	case n.closed:
		_ = c.Close()
	default:
		n.conns[c] = struct{}{}
	}
}

// close closes the connections of the set, and all new ones. A client that sends its first request
// at this moment gets a reset, as if its connection had still been in the listener's queue.
func (n *newConns) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Close()
	}
}
