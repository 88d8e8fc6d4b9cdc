package problem

import (
	"errors"
	"net/http"

	"github.com/perdure/perdure/internal/control/quota"
)

// CodeFull is the code of the problem that a node has no room for a request.
const CodeFull = "node_full"

// fullRetry is how many seconds a client should wait before it tries this or another API process
// again.
const fullRetry = 5

// Full returns the 503 for a node that has reached its bound of a resource, such as "open streams".
// Nothing was begun, so another API process may take the request.
func Full(resource string) *Problem {
	p := New(http.StatusServiceUnavailable, CodeFull, "this API process has no room for more "+resource+", and the request had no effect: try another one")
	p.RetryAfter = fullRetry
	return p
}

// FullIf returns Full for quota.ErrFull, and other errors of a quota.Room unchanged.
func FullIf(err error, resource string) error {
	if errors.Is(err, quota.ErrFull) {
		return Full(resource)
	}
	return err
}
