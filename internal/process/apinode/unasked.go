package apinode

import (
	"net"
	"net/http"
	"sync"
)

// unasked are the connections on which nothing has been asked yet. Browsers and HTTP clients open some
// ahead of need, and http.Server.Shutdown waits for each to ask until it is 5 s old. It is safe for
// concurrent use.
type unasked struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func newUnasked() *unasked { return &unasked{conns: map[net.Conn]struct{}{}} }

// track is an http.Server's ConnState.
func (u *unasked) track(c net.Conn, state http.ConnState) {
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

// close ends them, and those that are still to come. Who asks on one just now fares as who is still in
// the listener's queue: the answer is a reset.
func (u *unasked) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
}
