package kit

import (
	"crypto/rand"
	"strings"
)

// Mark is part of all content, so that tests find content where it must not be. It is in one case
// and without punctuation, so that tokenizers and encoders keep it in one piece.
const Mark = "zq7content"

// Marked returns a unique text that contains the mark.
func Marked(text string) string {
	return Mark + rand.Text()[:12] + " " + text
}

// LongText returns a text of about n bytes that repeats the mark.
func LongText(n int) string {
	var b strings.Builder
	b.WriteString(Marked(""))
	for b.Len() < n {
		b.WriteString("and " + Mark + " goes on, ")
	}
	b.WriteString("the end.")
	return b.String()
}

// WorkerSecret is a secret of the worker. It contains the mark, so that tests find it in histories
// and logs.
const WorkerSecret = Mark + "token"
