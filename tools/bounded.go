package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFailure is how much of a failure's text a model gets to see: enough to act on,
// too little for somebody else's HTML error page.
const maxFailure = 4 << 10

// bounded returns text as valid UTF-8 of at most limit bytes, with a last line
// that says so if something had to go.
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
