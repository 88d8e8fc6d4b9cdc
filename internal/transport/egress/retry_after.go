package egress

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter parses a Retry-After header: seconds or a date (RFC 9110, section 10.2.3). It returns
// 0 if the header is missing or invalid. now resolves a date.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}
