package stream

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/agui"
)

// MaxTitle bounds a thread's title, in characters (Unicode code points).
const MaxTitle = 80

// Title returns a title for a thread that begins with these messages: the beginning of the first
// message of a user that has text, on one line, without Markdown. It has at most MaxTitle
// characters. "" = there is no such message.
func Title(messages []agui.Message) string {
	for _, m := range messages {
		if m.Role != agui.RoleUser {
			continue
		}
		// The text may be long, and the title needs only its beginning.
		text := m.Content.Text()
		if title := shortened(plainLine(text[:min(len(text), maxTitleSource)])); title != "" {
			return title
		}
	}
	return ""
}

// ModelTitle returns the title in the answer of a model that was asked for one: its first line that
// is not empty, without Markdown and without quotes around it. It has at most MaxTitle characters.
// "" = the answer has none.
func ModelTitle(answer string) string {
	for line := range strings.Lines(answer[:min(len(answer), maxTitleSource)]) {
		if title := shortened(unquoted(plainLine(line))); title != "" {
			return title
		}
	}
	return ""
}

// quotes are the characters that models put around a title.
const quotes = "\"'`“”„‟«»‹›‘’‚「」『』"

// unquoted returns a line without the quotes around all of it.
func unquoted(line string) string {
	first, begin := utf8.DecodeRuneInString(line)
	last, end := utf8.DecodeLastRuneInString(line)
	if begin+end > len(line) || !strings.ContainsRune(quotes, first) || !strings.ContainsRune(quotes, last) {
		return line
	}
	inner := line[begin : len(line)-end]
	if strings.ContainsRune(inner, first) { // they are around parts of the line
		return line
	}
	return strings.TrimSpace(inner)
}

// maxTitleSource bounds the bytes of a message from which a title is made.
const maxTitleSource = 4 << 10

// IsTitle reports whether a text can be a title: it has at most MaxTitle characters, neither
// control characters nor characters that change the direction of text, and no space at its ends.
func IsTitle(text string) bool { return IsPlainText(text) && text == shortened(text) }

// IsPlainText reports whether a text is valid UTF-8 on one line that shows as what it is: without
// control characters, line separators, and characters that change the direction of text.
func IsPlainText(text string) bool { return text == PlainText(text) }

// PlainText returns a text without what IsPlainText refuses.
func PlainText(text string) string { return strings.ToValidUTF8(strings.Map(visible, text), "") }

// visible returns a character that may be in a title; -1 = it may not. Format characters may not,
// because some of them change the direction of text, except those that join the parts of an emoji.
func visible(r rune) rune {
	const zeroWidthJoiner = '\u200d'
	if r == unicode.ReplacementChar || r != zeroWidthJoiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
		return -1
	}
	return r
}

// markdown has the marks that Markdown adds to text, and what a title has in their place.
var markdown = []struct {
	mark *regexp.Regexp
	text string
}{
	{regexp.MustCompile("(?m)^[ \t]*(?:```|~~~).*$"), ""},
	{regexp.MustCompile(`(?m)^[ \t]*(?:[-*_=][ \t]*){3,}$`), ""},
	{regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d{1,9}[.)][ \t]+)+`), ""},
	{regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`), "$1"},
	{regexp.MustCompile("`+([^`]+)`+"), "$1"},
	{regexp.MustCompile(`\*{1,3}([^*\s](?:[^*\n]*[^*\s])?)\*{1,3}`), "$1"},
	{regexp.MustCompile(`(^|\W)_{1,3}([^_\s](?:[^_\n]*[^_\s])?)_{1,3}(\W|$)`), "$1$2$3"},
	{regexp.MustCompile(`~~([^~\s](?:[^~\n]*[^~\s])?)~~`), "$1"},
}

// plainLine returns a text without Markdown on one line, with single spaces.
func plainLine(text string) string {
	for _, m := range markdown {
		text = m.mark.ReplaceAllString(text, m.text)
	}
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return visible(r)
	}, strings.ToValidUTF8(text, ""))), " ")
}

// shortened returns a line with at most MaxTitle characters. It ends a longer one with "…", after a
// word if there is a space in its second half, and never within a character of several code points.
func shortened(line string) string {
	line = strings.TrimSpace(line)
	runes := []rune(line)
	if len(runes) <= MaxTitle {
		return line
	}
	end := MaxTitle - 1
	for end > 0 && (runes[end] == '\u200d' || runes[end-1] == '\u200d' || unicode.Is(unicode.M, runes[end])) {
		end--
	}
	for cut := end; cut > MaxTitle/2; cut-- {
		if runes[cut] == ' ' {
			end = cut
			break
		}
	}
	return strings.TrimSpace(string(runes[:end])) + "…"
}
