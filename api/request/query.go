package request

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// pageLimit is the default of the parameter limit, and maxPageLimit its maximum.
const (
	pageLimit    = 100
	maxPageLimit = 500
)

// PageBytes bounds the items of a page, in bytes. The item that exceeds it is the last one, so a
// page always makes progress.
const PageBytes = 4 << 20

// ParseQuery parses the query of a request. gin ignores the parameters that it cannot parse, so a
// request with an error must be refused. The error is a 400.
func ParseQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.BadRequest("invalid_input", "", fmt.Sprintf("the query of the URL is malformed: %.100s", err))
	}
	return query, nil
}

// Limit reads the parameter limit: how many items a page may have. The error is a 400.
func Limit(c *gin.Context) (int, error) {
	text, ok := c.GetQuery("limit")
	if !ok {
		return pageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPageLimit {
		return 0, problem.InvalidParameter("limit", fmt.Sprintf("limit must be a number from 1 to %d", maxPageLimit))
	}
	return limit, nil
}

// Flag reads a boolean parameter, true or false. defaultValue is its value if the request does not
// have the parameter. The error is a 400, also for an empty value: the caller of ?dryRun expects no
// deletion.
func Flag(c *gin.Context, name string, defaultValue bool) (bool, error) {
	value, isPresent := c.GetQuery(name)
	if !isPresent {
		return defaultValue, nil
	}
	switch value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, problem.InvalidParameter(name, name+" must be true or false")
}

// CheckParameter validates the value of any query parameter: its length, and that it has no control
// characters and no invalid UTF-8. IDs, names and cursors of other texts do not exist, and a filter
// with one would select nothing without a sign. The error is a 400.
func CheckParameter(name, value string) error {
	limit := stream.MaxIDBytes
	switch name {
	case "tenant", "subject":
		limit = auth.MaxNameBytes
	case "assignee":
		limit = auth.MaxNameBytes + len("role:")
	}
	var detail string
	switch {
	case len(value) > limit:
		detail = fmt.Sprintf("%s may have at most %d bytes", name, limit)
	case strings.ContainsFunc(value, isForbidden):
		detail = name + " must be Unicode text without control characters"
	default:
		return nil
	}
	if name == "cursor" || name == "after" || name == "waitFor" {
		return problem.InParameter(name, fmt.Errorf("%w: %s", stream.ErrInvalidCursor, detail))
	}
	return problem.InvalidParameter(name, detail)
}

// TenantOf returns the tenant in the query parameter "tenant", which need not exist; without the
// parameter, that of the caller.
func TenantOf(c *gin.Context) (string, error) {
	named, ok := c.GetQuery("tenant")
	if !ok {
		return Caller(c.Request.Context()).Tenant, nil
	}
	if err := (auth.Principal{Tenant: named}).Check(); err != nil {
		return "", problem.InvalidParameter("tenant", "tenant is not the name of a tenant")
	}
	return named, nil
}

// CountCursor returns the cursor of a list that only grows at one end: n is the number of items
// before the next page, counted from the fixed end.
func CountCursor(n int) string { return strconv.Itoa(n) }

// ParseCount parses a cursor of CountCursor; "" = 0. The error wraps stream.ErrInvalidCursor. The
// number may exceed the list.
func ParseCount(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return n, nil
}
