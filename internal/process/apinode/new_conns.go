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
func (u *newConns) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.closed:
		_ = c.Close()
	default:
		u.conns[c] = struct{}{}
	}
}

// close closes the connections of the set, and all new ones. A client that sends its first request
// at this moment gets a reset, as if its connection had still been in the listener's queue.
func (u *newConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
}
