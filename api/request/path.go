package request

import (
	"net/url"

	"github.com/gin-gonic/gin"
)

// Segment returns a parameter of the path, percent-decoded. "" = the route does not have it, or it
// is invalid.
func Segment(c *gin.Context, name string) string {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil { // the URL was parsed, so it is valid
		return ""
	}
	return value
}
