package api

import (
	"io"

	"github.com/gin-gonic/gin"
)

// countSizes is middleware that corrects the sizes which otelgin reports as metrics after the
// handlers. otelgin reads Request.ContentLength, which is -1 for a chunked body, and gin's size of
// the response, which is -1 for a response without a body. countSizes counts the bytes of a chunked
// body, and has gin write the header.
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
	// gin's size is 0 instead of -1 once the header is written.
	c.Writer.WriteHeaderNow()
}

// countedBody counts the bytes that the handler reads from a request's body.
type countedBody struct {
	io.ReadCloser
	read int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}
