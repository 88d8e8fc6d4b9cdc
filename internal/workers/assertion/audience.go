package assertion

import (
	"net/url"
	"strings"
)

// Origin returns the origin of a URL (RFC 6454, section 6.2), such as https://shop.example. It is the
// default audience of a server with a URL.
func Origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := u.Port(); scheme == "https" && port == "443" || scheme == "http" && port == "80" || port == "" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return scheme + "://" + host
}
