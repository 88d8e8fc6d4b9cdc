package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// timeBody bounds how long a client may take for its body, whether anybody reads it or net/http throws
// it away behind the answer. At the body's end net/http lifts the bound: streams are watched in silence.
func (s *Server) timeBody(c *gin.Context) {
	if c.Request.Body != http.NoBody {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(s.BodyTime)) // a recorder has none
	}
}

// readBody reads a body in its bounds.
func (s *Server) readBody(c *gin.Context) ([]byte, error) {
	if err := checkBodyKind(c.Request); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.MaxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		return nil, problem(http.StatusRequestTimeout, "body_timeout", fmt.Sprintf("the body did not come within %s", s.BodyTime))
	case err != nil:
		return nil, badRequest("invalid_input", "", "the body could not be read")
	}
	return body, nil
}

// checkBodyKind refuses what says that it is no plain JSON. Who says nothing is believed.
func checkBodyKind(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json")
	}
	return nil
}

// readJSON reads a body that is one JSON object, or nothing.
func (s *Server) readJSON(c *gin.Context, into any) error {
	if c.Request.ContentLength == 0 { // whatever kind of nothing it is said to be
		return nil
	}
	body, err := s.readBody(c)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return badRequest("invalid_input", "", "must be a JSON object with the documented members")
	}
	return nil
}
