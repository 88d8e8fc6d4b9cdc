package problem

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
)

// Writer answers HTTP requests with problems. Handlers embed it. It is safe for concurrent use.
type Writer struct{ logger *slog.Logger }

// NewWriter returns a Writer that logs the causes of 5xx answers.
func NewWriter(logger *slog.Logger) Writer { return Writer{logger} }

// Handle returns a gin handler that calls serve, and answers with the problem of its error. After
// an error, serve must not have written to the response.
func (w Writer) Handle(serve func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := serve(c); err != nil {
			w.Refuse(c, err)
		}
	}
}

// Refuse answers with the problem of an error, and ends gin's chain of handlers. Nothing may have
// been written to the response before.
//
// It logs the cause of a 5xx, once, because the answer does not contain it. It does not log a full
// node, which would log most under load, or a failure after the client has disconnected.
func (w Writer) Refuse(c *gin.Context, err error) {
	p := Of(err)
	if p.Status >= http.StatusInternalServerError && p.Code != CodeFull && c.Request.Context().Err() == nil {
		w.logger.ErrorContext(c.Request.Context(), "request failed", "method", c.Request.Method, "route", c.FullPath(), "error", err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","status":500,"code":"internal"}`)
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Challenge != "" {
		c.Header("WWW-Authenticate", p.Challenge)
	}
	c.Abort()
	c.Data(p.Status, "application/problem+json", body)
}
