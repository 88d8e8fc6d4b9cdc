package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFailure is the most bytes of a failure's text that a model receives: enough to act on, too
// little for an HTML error page.
const maxFailure = 4 << 10

// bounded returns text as valid UTF-8 of at most limit bytes. If something was cut, the last line
// says so.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	note := fmt.Sprintf("\n[truncated: the full text has %d bytes]", len(text))
	end := limit - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + note
}
