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
)

// Reader reads the bodies of requests within the bounds of a server.
type Reader struct {
	maxBody  int64
	bodyTime time.Duration
}

// NewReader returns a Reader for bodies of at most maxBody bytes that arrive within bodyTime.
func NewReader(maxBody int64, bodyTime time.Duration) Reader { return Reader{maxBody, bodyTime} }

// LimitBodyTime is middleware that bounds how long a client may take to send its body, whether the
// handler reads it or net/http discards it after the answer. net/http removes the bound at the
// body's end, because streams may be silent.
func (r Reader) LimitBodyTime(c *gin.Context) {
	if c.Request.Body != http.NoBody {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(r.bodyTime)) // a recorder has none
	}
}

// ReadJSONBody reads a body that is declared as JSON, or has no type.
func (r Reader) ReadJSONBody(c *gin.Context) ([]byte, error) {
	if err := CheckBodyKind(c.Request); err != nil {
		return nil, err
	}
	return r.ReadBody(c, r.maxBody)
}

// ReadBody reads a body of any type of at most most bytes, and at most the bound of the server.
func (r Reader) ReadBody(c *gin.Context, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, min(most, r.maxBody)))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		return nil, problem.New(http.StatusRequestTimeout, "body_timeout", fmt.Sprintf("the body did not come within %s", r.bodyTime))
	case err != nil:
		return nil, problem.BadRequest("invalid_input", "", "the body could not be read")
	}
	return body, nil
}

// ReadJSON reads a body that is one JSON object, or empty. The value null counts as empty, because
// clients send it for a missing value.
func (r Reader) ReadJSON(c *gin.Context, into any) error {
	if c.Request.ContentLength == 0 { // whatever its type
		return nil
	}
	body, err := r.ReadJSONBody(c)
	if err != nil || len(body) == 0 || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return err
	}
	return DecodeObject(body, into)
}
