package problem

import "net/http"

// CodeFull is the code of a node that has no room.
const CodeFull = "node_full"

// fullRetry is how many seconds a client should wait before it tries this or another node again.
const fullRetry = 5

// Full returns the problem of a node that has as many streams or sockets as it may.
func Full() *Problem {
	p := New(http.StatusServiceUnavailable, CodeFull, "this node has as much open as it may; nothing was begun, and another node may have room")
	p.RetryAfter = fullRetry
	return p
}
