package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
)

// Reader reads the bodies of requests within the bounds of a server. Handlers embed it. It is safe
// for concurrent use.
type Reader struct {
	maxBody  int64 // in bytes
	bodyTime time.Duration
	bodies   *quota.Bytes
}

// NewReader returns a Reader for bodies of at most maxBody bytes that arrive within bodyTime, and
// share the memory of bodies.
func NewReader(maxBody int64, bodyTime time.Duration, bodies *quota.Bytes) Reader {
	return Reader{maxBody, bodyTime, bodies}
}

// bodyKey is the key of the *quota.Portion of a request's body in its gin.Context.
type bodyKey struct{}

// holdBody returns the portion of the request's body. EndBody releases it.
func (r Reader) holdBody(c *gin.Context) *quota.Portion {
	caller, _ := auth.From(c.Request.Context())
	held := r.bodies.Portion(caller)
	c.Set(bodyKey{}, held)
	return held
}

// EndBody is middleware. It releases the memory of a body at the end of its request, unless
// ReleaseBody has done so.
func (r Reader) EndBody(c *gin.Context) {
	defer ReleaseBody(c)
	c.Next()
}

// ReleaseBody releases the memory of the request's body. A handler calls it when it needs the body
// no longer, but continues for a long time.
func ReleaseBody(c *gin.Context) {
	value, _ := c.Get(bodyKey{})
	if held, ok := value.(*quota.Portion); ok {
		held.Release()
	}
}

// countedBody reads a body, and takes memory for what it has read.
type countedBody struct {
	io.Reader
	held *quota.Portion
	read int
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	if full := b.held.Grow(b.read); full != nil {
		return n, full //nolint:wrapcheck // ReadBody wraps it
	}
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}

// LimitBodyTime is middleware that bounds how long a client may take to send its body, whether the
// handler reads it or net/http discards it after the answer. Without it, a client that sends a byte
// a minute would hold a connection for ever. net/http removes the deadline at the end of the body,
// so streams may be silent.
func (r Reader) LimitBodyTime(c *gin.Context) {
	if c.Request.Body != http.NoBody {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(r.bodyTime)) // a recorder of a test has none
	}
}

// ReadJSONBody reads a body of at most the server's bound that is declared as JSON, or has no
// Content-Type. It does not parse the body.
func (r Reader) ReadJSONBody(c *gin.Context) ([]byte, error) {
	if err := CheckBodyKind(c.Request); err != nil {
		return nil, err
	}
	return r.ReadBody(c, r.maxBody)
}

// ReadBody reads a body of any type, of at most maxBytes bytes and at most the server's bound.
// Errors: 413 too_large, 408 body_timeout, 429 quota_exceeded, 503 node_full, and 400 if the client
// breaks off.
func (r Reader) ReadBody(c *gin.Context, maxBytes int64) ([]byte, error) {
	limited := http.MaxBytesReader(c.Writer, c.Request.Body, min(maxBytes, r.maxBody))
	body, err := io.ReadAll(&countedBody{Reader: limited, held: r.holdBody(c)})
	var tooLarge *http.MaxBytesError
	var share *quota.ShareError
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case errors.Is(err, quota.ErrFull), errors.As(err, &share):
		c.Header("Connection", "close") // the rest of the body is not read
		return nil, problem.FullIf(err, "large bodies")
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The rest of the body cannot be read, so the connection cannot be reused.
		c.Header("Connection", "close")
		return nil, problem.New(http.StatusRequestTimeout, "body_timeout", fmt.Sprintf("the body did not arrive within %s", r.bodyTime))
	case err != nil:
		return nil, problem.BadRequest("invalid_input", "", "the body could not be read")
	}
	return body, nil
}

// ReadJSON decodes a body that is one JSON object into a struct, strictly (see DecodeObject). An
// empty body leaves the struct unchanged, and so does null, which some clients send for a missing
// value.
func (r Reader) ReadJSON(c *gin.Context, target any) error {
	if c.Request.ContentLength == 0 { // an empty body needs no Content-Type
		return nil
	}
	body, err := r.ReadJSONBody(c)
	if err != nil || len(body) == 0 || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return err
	}
	return DecodeObject(body, target)
}
