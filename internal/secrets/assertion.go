package secrets

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/perdure/perdure/internal/workers/assertion"
)

// compactJWT matches what may be a JSON Web Token, also without its end: a header that begins with
// {", claims, and a signature.
var compactJWT = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`)

// maxHeader bounds the header of an assertion, in bytes of base64url. It has the names of an
// algorithm, a key and a type.
const maxHeader = 256

// hideAssertions replaces the assertions in a text. Their encoding in JSON and in URLs is their plain
// form. Other tokens stay, because a tool may return them.
func hideAssertions(s string) string {
	if !strings.Contains(s, "eyJ") {
		return s
	}
	return compactJWT.ReplaceAllStringFunc(s, func(token string) string {
		// The match may begin before the token, with characters of base64url.
		end := strings.IndexByte(token, '.')
		for start := max(0, end-maxHeader); start < end; start++ {
			next := strings.Index(token[start:end], "eyJ")
			if next < 0 {
				break
			}
			if start += next; isAssertionHeader(token[start:end]) {
				return token[:start] + hidden
			}
		}
		return token
	})
}

// isAssertionHeader reports whether the first part of a token is that of an assertion.
func isAssertionHeader(encoded string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	var header struct {
		Type string `json:"typ"`
	}
	return json.Unmarshal(raw, &header) == nil && header.Type == assertion.Type
}
