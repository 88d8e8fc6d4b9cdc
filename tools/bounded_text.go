package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFailure is the maximum length, in bytes, of a failure's text for the model. It is sufficient
// for an explanation, and keeps an HTML error page out of the conversation.
const maxFailure = 4 << 10

// bounded returns text as valid UTF-8 of at most limit bytes. A truncated text ends with a note
// about its full length. limit must be longer than that note.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	note := fmt.Sprintf("\n[truncated: the full text has %d bytes]", len(text))
	end := limit - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) { // do not split a character
		end--
	}
	return text[:end] + note
}
