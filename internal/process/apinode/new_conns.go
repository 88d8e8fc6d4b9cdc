package apinode

import (
	"net"
	"net/http"
	"sync"
)

// newConns are the connections without a request yet. Browsers and HTTP clients open some in
// advance, and http.Server.Shutdown waits for a request on each of them until it is 5 s old. It is
// safe for concurrent use.
type newConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func trackNewConns() *newConns { return &newConns{conns: map[net.Conn]struct{}{}} }

// track is the ConnState of an http.Server.
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

// close closes these connections, and later new ones. A client that sends a request at this moment
// gets a reset, as if its connection had still been in the listener's queue.
func (u *newConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
}
