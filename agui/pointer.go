package agui

import (
	"strconv"
	"strings"
)

// location is the current position of a visitor in the document.
type location []step

// step is one step of a location: a member's name, or the index of an array element.
type step struct {
	name  string
	index int
	array bool
}

func (l *location) enter(name string)     { *l = append(*l, step{name: name}) }
func (l *location) enterIndex(i int)      { *l = append(*l, step{index: i, array: true}) }
func (l *location) leave()                { *l = (*l)[:len(*l)-1] }
func (l location) member(n string) string { return l.String() + "/" + escapeToken(n) }

// String returns the JSON pointer (RFC 6901) of the location; "" is the whole document.
func (l location) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteByte('/')
		if s.array {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escapeToken(s.name))
		}
	}
	return b.String()
}

var tokenEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// escapeToken escapes a token of a JSON pointer (RFC 6901, section 3).
func escapeToken(s string) string { return tokenEscaper.Replace(s) }

// validPointer reports whether s is a JSON pointer (RFC 6901).
func validPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}
