package api

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/approvalroutes"
)

// traced reports whether a request gets a span. Requests outside /v1/ are probes and documents. A
// WebSocket has one span for each frame instead, because a span of hours is of no use. The path of
// a link is a credential and must not reach a trace store.
func traced(c *gin.Context) bool {
	path := c.Request.URL.Path
	return strings.HasPrefix(path, "/v1/") && path != socketPath && !strings.HasPrefix(path, approvalroutes.LinkPath)
}
