package api

import (
	"io"

	"github.com/gin-gonic/gin"
)

// countSizes gives otelgin the sizes that it reports after the handlers: it takes the length that a
// request declares, which is -1 for a body without one, and gin's size of the response, which is -1
// for one without a body.
func countSizes(c *gin.Context) {
	declared := c.Request.ContentLength >= 0
	body := &countedBody{ReadCloser: c.Request.Body}
	if !declared {
		c.Request.Body = body
	}
	c.Next()
	if !declared {
		c.Request.ContentLength = body.read
	}
	c.Writer.WriteHeaderNow()
}

// countedBody counts the bytes that are read.
type countedBody struct {
	io.ReadCloser
	read int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}
