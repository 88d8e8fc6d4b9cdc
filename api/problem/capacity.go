package problem

import "net/http"

// CodeFull is the code of the problem that a node has no room for another stream or WebSocket.
const CodeFull = "node_full"

// fullRetry is how many seconds a client should wait before it tries this or another API process
// again.
const fullRetry = 5

// Full returns the 503 for a node whose streams or WebSockets have reached their bound. Nothing was
// begun, so another API process may take the request.
func Full() *Problem {
	p := New(http.StatusServiceUnavailable, CodeFull, "this API process has reached its limit of open streams, and the request had no effect: try another one")
	p.RetryAfter = fullRetry
	return p
}
