package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/streams"
)

// firstAfter reads the first frames after the input's cursor, so that an invalid one gets an error
// status. It sets the status 204 if the run has ended and nothing follows. Without a cursor it returns
// nil.
func (s *Server) firstAfter(c *gin.Context, in *preparedInput) (*streams.Batch, error) {
	if in.after == nil {
		return nil, nil //nolint:nilnil // nothing was read
	}
	first, err := s.streams.First(c.Request.Context(), in.view)
	if errors.Is(err, io.EOF) {
		c.Status(http.StatusNoContent)
		return nil, nil //nolint:nilnil // nothing follows
	}
	return first, err
}
