package api

import (
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// places are what a node has room for of one kind. They are safe for concurrent use.
type places struct {
	most  int64
	taken atomic.Int64
}

// take reports false if all are taken. What was taken must be left.
func (p *places) take() bool {
	if p.taken.Add(1) > p.most {
		p.taken.Add(-1)
		return false
	}
	return true
}

func (p *places) leave() { p.taken.Add(-1) }

// codeFull: this node has as much open as it may.
const codeFull = "node_full"

// fullRetry is when to come again, in seconds, to this node or another one.
const fullRetry = 5

func errFull() *Problem {
	p := problem(http.StatusServiceUnavailable, codeFull, "this node has as much open as it may; nothing was begun, and another node may have room")
	p.RetryAfter = fullRetry
	return p
}

// takePlace counts the answer to a GET request, stream or not, among the streams of the node until the client has taken it.
// Commands are not counted: their answers are small, and a node that is full must still take a cancel or a decision.
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
