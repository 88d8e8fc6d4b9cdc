package wire

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a JSON string literal and reports whether raw is one. raw
// must be valid JSON apart from its encoding.
//
// Unlike encoding/json it loses nothing: ill-formed bytes stay, and half a
// surrogate pair becomes its three-byte form, so that a [Mender] can join a
// character which a server cut in two.
func Unquote(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if !strings.Contains(raw, `\`) {
		return raw, true
	}
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return string(append(out, raw...)), true
		}
		out = append(out, raw[:i]...)
		out, raw = appendEscape(out, raw[i+1:])
	}
	return string(out), true
}

// appendEscape decodes the escape that s starts with, the backslash removed.
func appendEscape(out []byte, s string) ([]byte, string) {
	switch s[0] {
	case 'b':
		return append(out, '\b'), s[1:]
	case 'f':
		return append(out, '\f'), s[1:]
	case 'n':
		return append(out, '\n'), s[1:]
	case 'r':
		return append(out, '\r'), s[1:]
	case 't':
		return append(out, '\t'), s[1:]
	case 'u':
		unit, ok := hexUnit(s[1:])
		if !ok {
			return append(out, `\u`...), s[1:]
		}
		return appendUnit(out, unit, s[5:])
	default:
		return append(out, s[0]), s[1:]
	}
}

// appendUnit appends a UTF-16 code unit, together with the second half of its
// pair if rest begins with that.
func appendUnit(out []byte, unit rune, rest string) ([]byte, string) {
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit), rest
	}
	if strings.HasPrefix(rest, `\u`) {
		if low, ok := hexUnit(rest[2:]); ok {
			if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
				return utf8.AppendRune(out, r), rest[6:]
			}
		}
	}
	return append(out, 0xED, 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F), rest
}

func hexUnit(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(unit), err == nil
}

// Mender turns pieces of text into pieces of valid UTF-8. A character that
// was cut in two comes out with the second piece; what cannot be mended comes
// out as U+FFFD. The zero value is ready.
type Mender struct{ pending string }

// Mend returns what can be said after the next piece, which may be nothing.
func (m *Mender) Mend(piece string) string {
	if m.pending == "" && utf8.ValidString(piece) {
		return piece
	}
	s := m.pending + piece
	m.pending = ""
	var out strings.Builder
	for len(s) > 0 {
		if incomplete(s) {
			m.pending = s
			break
		}
		r, size := decodeRune(s)
		out.WriteRune(r)
		s = s[size:]
	}
	return out.String()
}

// Flush returns the replacement for a character whose rest never came.
func (m *Mender) Flush() string {
	if m.pending == "" {
		return ""
	}
	m.pending = ""
	return string(utf8.RuneError)
}

// incomplete reports whether s, which is all we have, may be the beginning of
// a character.
func incomplete(s string) bool {
	if !utf8.FullRuneInString(s) || surrogateStart(s) {
		return true
	}
	half, ok := surrogate(s)
	if !ok || half >= 0xDC00 {
		return false
	}
	rest := s[3:]
	return rest == "" || rest == "\xED" || surrogateStart(rest)
}

// surrogateStart reports whether s is two thirds of the three-byte form.
func surrogateStart(s string) bool {
	return len(s) == 2 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF
}

// decodeRune is utf8.DecodeRuneInString for text that may hold surrogate
// pairs as two three-byte forms.
func decodeRune(s string) (rune, int) {
	high, ok := surrogate(s)
	if !ok {
		return utf8.DecodeRuneInString(s)
	}
	if low, ok := surrogate(s[3:]); ok {
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, 6
		}
	}
	return utf8.RuneError, 3
}

// surrogate decodes the three-byte form of half a surrogate pair.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}
