package e2e

import (
	"crypto/rand"
	"strings"
)

// mark stands in everything that is content, so that it is found where none may be. It is in one
// case and without punctuation: a tokenizer, an encoder or a shortener leaves it in one piece.
const mark = "zq7content"

// say makes a text that no other test says and that carries the mark, also in each of its parts.
func say(text string) string {
	return mark + rand.Text()[:12] + " " + text
}

// long makes a text of about n bytes that carries the mark all through.
func long(n int) string {
	var b strings.Builder
	b.WriteString(say(""))
	for b.Len() < n {
		b.WriteString("and " + mark + " goes on, ")
	}
	b.WriteString("the end.")
	return b.String()
}
