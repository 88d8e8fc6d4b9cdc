package request

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/stream"
)

// RunOf returns the run in the path.
func RunOf(c *gin.Context) (stream.Run, error) {
	thread, err := ThreadIn(c.Request.Context(), Segment(c, "thread"))
	if err != nil {
		return stream.Run{}, err
	}
	run := stream.Run{Thread: thread, ID: Segment(c, "run")}
	return run, CheckRun(run)
}

// ThreadOf returns the thread in the path.
func ThreadOf(c *gin.Context) (stream.Thread, error) {
	thread, err := ThreadIn(c.Request.Context(), Segment(c, "thread"))
	if err != nil {
		return thread, err
	}
	return thread, CheckID("/threadId", thread.ID)
}

// Segment decodes one segment of the path.
func Segment(c *gin.Context, name string) string {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil { // the URL was parsed, so it is valid
		return ""
	}
	return value
}
