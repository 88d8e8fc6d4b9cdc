package request

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/stream"
)

// RunOf returns the run in the path, {thread} and {run}, in the caller's tenant. It validates the
// IDs, but not whether the run exists.
func RunOf(c *gin.Context) (stream.Run, error) {
	thread, err := ThreadIn(c.Request.Context(), Segment(c, "thread"))
	if err != nil {
		return stream.Run{}, err
	}
	run := stream.Run{Thread: thread, ID: Segment(c, "run")}
	return run, CheckRun(run)
}

// ThreadOf returns the thread in the path, {thread}, in the caller's tenant. It validates the ID,
// but not whether the thread exists.
func ThreadOf(c *gin.Context) (stream.Thread, error) {
	thread, err := ThreadIn(c.Request.Context(), Segment(c, "thread"))
	if err != nil {
		return thread, err
	}
	return thread, CheckID("/threadId", thread.ID)
}

// Segment returns a parameter of the path, percent-decoded. "" = the route does not have it, or it
// is invalid.
func Segment(c *gin.Context, name string) string {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil { // the URL was parsed, so it is valid
		return ""
	}
	return value
}
