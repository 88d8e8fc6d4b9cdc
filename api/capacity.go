package api

import (
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// places are how many items of one kind a node has room for. They are safe for concurrent use.
type places struct {
	most  int64
	taken atomic.Int64
}

// take reports whether there is room. The caller must leave what it took.
func (p *places) take() bool {
	if p.taken.Add(1) > p.most {
		p.taken.Add(-1)
		return false
	}
	return true
}

func (p *places) leave() { p.taken.Add(-1) }

// codeFull is the code of a node that has no room.
const codeFull = "node_full"

// fullRetry is how many seconds a client should wait before it tries this or another node again.
const fullRetry = 5

func errFull() *Problem {
	p := problem(http.StatusServiceUnavailable, codeFull, "this node has as much open as it may; nothing was begun, and another node may have room")
	p.RetryAfter = fullRetry
	return p
}

// takePlace counts the answer to a GET request, stream or not, as a stream of the node until the client has taken it. Commands do not count: their answers are
// small, and a full node must still take a cancel or a decision.
func (s *Server) takePlace(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	if !s.streams.take() {
		s.refuse(c, errFull())
		return
	}
	defer s.streams.leave()
	c.Next()
}
