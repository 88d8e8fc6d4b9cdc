package kit

import (
	"crypto/rand"
	"strings"
)

// Mark stands in everything that is content, so that it is found where none may be. It is in one
// case and without punctuation: a tokenizer, an encoder or a shortener leaves it in one piece.
const Mark = "zq7content"

// Say makes a text that no other test says and that carries the mark, also in each of its parts.
func Say(text string) string {
	return Mark + rand.Text()[:12] + " " + text
}

// Long makes a text of about n bytes that carries the mark all through.
func Long(n int) string {
	var b strings.Builder
	b.WriteString(Say(""))
	for b.Len() < n {
		b.WriteString("and " + Mark + " goes on, ")
	}
	b.WriteString("the end.")
	return b.String()
}

// Token is a secret of the worker's. It carries the mark, so that it is found in histories and
// logs.
const Token = Mark + "token"
