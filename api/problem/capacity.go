package problem

import "net/http"

// CodeFull is the code of the problem that a node has no room for a request.
const CodeFull = "node_full"

// fullRetry is how many seconds a client should wait before it tries this or another API process
// again.
const fullRetry = 5

// Full returns the 503 for a node that has reached its bound of a resource, such as "open streams".
// Nothing was begun, so another API process may take the request.
func Full(resource string) *Problem {
	p := New(http.StatusServiceUnavailable, CodeFull, "this API process has reached its limit of "+resource+", and the request had no effect: try another one")
	p.RetryAfter = fullRetry
	return p
}
