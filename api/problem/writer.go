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
	p := nameCursor(Of(err), c)
	if p.Status >= http.StatusInternalServerError && p.Code != CodeFull && c.Request.Context().Err() == nil {
		w.logger.ErrorContext(c.Request.Context(), "request failed", "method", c.Request.Method, "route", c.FullPath(), "error", err)
	}
	c.Abort()
	Keep(c, p)
	Write(c.Writer, p)
}

// nameCursor returns a problem that names the parameter of an invalid cursor. A request has one of
// cursor and after; a cursor in the header Last-Event-ID takes precedence over after.
func nameCursor(p *Problem, c *gin.Context) *Problem {
	if p.Code != codeInvalidCursor || p.Parameter != "" {
		return p
	}
	named := *p
	switch {
	case c.Query("cursor") != "":
		named.Parameter = "cursor"
	case c.Query("after") != "" && c.GetHeader("Last-Event-ID") == "":
		named.Parameter = "after"
	}
	return &named
}

// Write writes a problem as the response. Nothing may have been written to the response before.
func Write(w http.ResponseWriter, p *Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","status":500,"code":"internal"}`)
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.RateLimit != "" {
		header.Set("RateLimit", p.RateLimit)
		header.Set("RateLimit-Policy", p.RateLimitPolicy)
	}
	if p.Challenge != "" {
		header.Set("WWW-Authenticate", p.Challenge)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client may be gone
}

// keptKey is the key of the problem of a request in gin's context.
const keptKey = "perdure.problem"

// Keep notes the problem of a request for Kept. Refuse calls it; a handler that answers with a page
// instead of a problem calls it itself.
func Keep(c *gin.Context, p *Problem) { c.Set(keptKey, p) }

// Kept returns the problem with which a request is refused; nil = it is not refused.
func Kept(c *gin.Context) *Problem {
	p, _ := c.Get(keptKey)
	kept, _ := p.(*Problem)
	return kept
}
